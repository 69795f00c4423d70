"""Run the benchmarks: ./run bench [NAME...] [--write]."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Result

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
START, END = "<!-- results -->", "<!-- end of results -->"


def _kernel() -> list[Result]:
    from benchmarks.kernel import sketch_against_group_by

    return [sketch_against_group_by()]


def _pipeline() -> list[Result]:
    from benchmarks.pipeline import parquet_against_scan

    return [parquet_against_scan()]


def _files() -> list[Result]:
    from benchmarks.pipeline import small_files_against_reading

    return [small_files_against_reading()]


def _queries() -> list[Result]:
    from benchmarks.queries import queries_and_size

    return queries_and_size()


def _memory() -> list[Result]:
    from benchmarks.memory import memory_of_large_table

    return [memory_of_large_table()]


SUITES: dict[str, Callable[[], list[Result]]] = {
    "kernel": _kernel,
    "pipeline": _pipeline,
    "files": _files,
    "queries": _queries,
    "memory": _memory,
}


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
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    chosen = parser.parse_args()
    results: list[Result] = []
    for name in chosen.names or SUITES:
        for result in SUITES[name]():
            results.append(result)
            mark = "reached" if result.reached else "MISSED"
            print(
                f"{result.ratio:8.2f}  ({result.wanted}, {mark})  {result.name}: {result.detail}", flush=True
            )
    if chosen.write:
        intro = f"Measured on {os.cpu_count()} cores by `./run bench --write`."
        table = f"{START}\n{intro}\n\n{as_markdown(results)}\n{END}"
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.split(START)[0], page.split(END)[1]
        PAGE.write_text(before + table + after, encoding="utf-8")


if __name__ == "__main__":
    main()
