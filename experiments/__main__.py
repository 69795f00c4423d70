"""Run experiments: the paper's on any collections, or those behind a page of the docs."""

import argparse
import sys
from pathlib import Path

DESCRIPTION = """\
Repeat the paper's experiments on collections of tables: `sbn`, the paper's synthetic tables, or any folder.
Every stage keeps what it found in --into as Parquet, and is not repeated while that is there; the report is
report.html and report.md there. Or, with --page, measure what a page of docs/ reports.
"""


def _coverage(chosen: argparse.Namespace) -> None:
    from experiments.measured.coverage import SAMPLES, main

    main(chosen.samples or SAMPLES, chosen.keep)


def _chance(chosen: argparse.Namespace) -> None:
    from experiments.measured.chance import main

    main()


def _ranking(chosen: argparse.Namespace) -> None:
    from experiments.measured.ranking import main

    main(chosen.collection)


def _picture(chosen: argparse.Namespace) -> None:
    from experiments.measured.picture import main

    main()


def _messy(chosen: argparse.Namespace) -> None:
    from experiments.messy.run import main

    main(chosen.collection, chosen.into, chosen.seed, chosen.write)


PAGES = {
    "coverage": _coverage,
    "chance": _chance,
    "ranking": _ranking,
    "picture": _picture,
    "messy": _messy,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run experiments", description=DESCRIPTION)
    parser.add_argument(
        "collection",
        nargs="*",
        help="sbn, or a folder of tables; sbn when none is named, with --smoke also a small example",
    )
    parser.add_argument("--into", type=Path, help="where results go (results; with --smoke, results/smoke)")
    parser.add_argument("--smoke", action="store_true", help="tiny inputs: all of it in two minutes")
    parser.add_argument("--seed", type=int, default=1, help="of everything random (1)")
    parser.add_argument(
        "--write",
        action="store_true",
        help="put the report into docs/measured/ too (experiments.md; with --page messy, messy.md)",
    )
    parser.add_argument("--page", choices=PAGES, help="measure what a page of docs/ reports instead")
    parser.add_argument("--samples", type=int, help="--page coverage: samples a cell, for a quicker look")
    parser.add_argument("--keep", type=Path, help="--page coverage: a file of results, to go on from later")
    chosen = parser.parse_args()
    if chosen.page:
        PAGES[chosen.page](chosen)
    else:
        from covary.errors import CovaryError
        from experiments.paper.run import main as paper

        try:
            paper(chosen.collection, chosen.into, chosen.smoke, chosen.seed, chosen.write)
        except CovaryError as problem:
            sys.exit(str(problem))


if __name__ == "__main__":
    main()
