"""The benchmarks by name; each imports what it needs when it is run."""

from collections.abc import Callable

from benchmarks.measure import Result


def _kernel() -> list[Result]:
    from benchmarks.kernel import sketch_against_group_by

    return sketch_against_group_by()


def _pipeline() -> list[Result]:
    from benchmarks.pipeline import parquet_against_scan

    return [parquet_against_scan()]


def _files() -> list[Result]:
    from benchmarks.pipeline import small_files_against_reading

    return small_files_against_reading()


def _keys() -> list[Result]:
    from benchmarks.keys import canonical_against_exact, granularities_against_one

    return [canonical_against_exact(), *granularities_against_one()]


def _queries() -> list[Result]:
    from benchmarks.queries import queries_and_size

    return queries_and_size()


def _memory() -> list[Result]:
    from benchmarks.memory import memory_of_large_table

    return [memory_of_large_table()]


def _statistics() -> list[Result]:
    from benchmarks.statistics import candidates_at_once, resampling

    return [*candidates_at_once(), resampling()]


SUITES: dict[str, Callable[[], list[Result]]] = {
    "kernel": _kernel,
    "pipeline": _pipeline,
    "files": _files,
    "keys": _keys,
    "queries": _queries,
    "memory": _memory,
    "statistics": _statistics,
}


def run(name: str) -> list[Result]:
    """Run a suite by name."""
    return SUITES[name]()
