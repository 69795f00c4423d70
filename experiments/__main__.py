"""Run an experiment: ./run experiments NAME."""

import argparse
from collections.abc import Callable
from pathlib import Path


def _coverage(chosen: argparse.Namespace) -> None:
    from experiments.coverage import SAMPLES, main

    main(chosen.samples or SAMPLES, chosen.keep)


def _chance(chosen: argparse.Namespace) -> None:
    from experiments.chance import main

    main()


def _ranking(chosen: argparse.Namespace) -> None:
    from experiments.ranking import main

    main(chosen.collection)


def _picture(chosen: argparse.Namespace) -> None:
    from experiments.picture import main

    main()


EXPERIMENTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "coverage": _coverage,
    "chance": _chance,
    "ranking": _ranking,
    "picture": _picture,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run experiments", description="Measure what the docs report.")
    parser.add_argument("name", choices=EXPERIMENTS, help="which")
    parser.add_argument("collection", nargs="*", help="ranking: folders, with FOLDER.truth.parquet")
    parser.add_argument("--samples", type=int, help="coverage: samples a cell, for a quicker look")
    parser.add_argument("--keep", type=Path, help="coverage: a file of results, to go on from later")
    chosen = parser.parse_args()
    EXPERIMENTS[chosen.name](chosen)


if __name__ == "__main__":
    main()
