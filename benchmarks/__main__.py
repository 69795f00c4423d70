"""Run the benchmarks: ./run bench [NAME...] [--write]."""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.measure import Result
from benchmarks.suites import SUITES, run
from experiments.writing import between_marks

PAGE = Path(__file__).parents[1] / "docs" / "measured" / "benchmarks.md"


def _in_a_process_of_its_own(name: str) -> list[Result]:
    """Run a suite so that none finds the memory, or the Spark session, of another."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(run, name).result()


def as_markdown(results: list[Result]) -> str:
    lines = ["| measured | ratio | wanted | in this run |", "|---|---|---|---|"]
    lines += [f"| {r.name} | **{r.ratio:.2f}** | {r.wanted} | {r.detail} |" for r in results]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="./run bench", description="Ratios measured side by side, best of several."
    )
    parser.add_argument(
        "names", nargs="*", choices=[*SUITES, []], help=f"which: {', '.join(SUITES)}; all by default"
    )
    parser.add_argument("--write", action="store_true", help="put the table into docs/measured/benchmarks.md")
    parser.add_argument("--peers", action="store_true", help="against DuckDB, Polars, tantivy, LSH Ensemble")
    parser.add_argument("--scale", action="store_true", help="indexes of up to 1,000,000 column pairs")
    parser.add_argument("--since", metavar="REVISION", help="queries and builds, beside an earlier commit's")
    parser.add_argument(
        "--scratch", type=Path, default=Path("results", "bench"), help="where the last three work"
    )
    chosen = parser.parse_args()
    if chosen.peers:
        from benchmarks.against import compare

        compare(chosen.scratch, PAGE if chosen.write else None)
        return
    if chosen.since:
        from benchmarks import since

        since.compare(chosen.since, chosen.scratch)
        return
    if chosen.scale:
        from benchmarks.atscale import measure

        measure(chosen.scratch, PAGE if chosen.write else None)
        return
    results: list[Result] = []
    for name in chosen.names or SUITES:
        for result in _in_a_process_of_its_own(name):
            results.append(result)
            mark = "reached" if result.reached else "MISSED"
            print(
                f"{result.ratio:8.2f}  ({result.wanted}, {mark})  {result.name}: {result.detail}", flush=True
            )
    if chosen.write:
        intro = f"Measured on {os.cpu_count()} cores by `./run bench --write`."
        between_marks(PAGE, "results", f"{intro}\n\n{as_markdown(results)}")


if __name__ == "__main__":
    main()
