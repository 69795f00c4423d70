"""How a hit joins, in words: the columns, the granularity, the rows per key; in a line, and explained."""

from rich.console import RenderableType

from covary.cli.words import count_of, lines_of, printable
from covary.query.hits import Hit, Hits, QueryNote
from covary.sketching.aggregate import AGGREGATES

SEVERAL = 1.05  # rows per key, on average


def column_of(hit: Hit) -> str:
    """Name the column; and its aggregate, unless it is the usual one."""
    return hit.value if hit.aggregate == "mean" else f"{hit.aggregate} of {hit.value}"


def by_granularity(granularity: str) -> str:
    """Say by what times were joined, where not as they are."""
    return "" if granularity in ("", "moment") else f", by {granularity}"


def how_it_joins(hit: Hit, query: QueryNote) -> str:
    """Say in words on what a hit joins, and how the rows of one key became one number."""
    by = by_granularity(hit.granularity)
    parts = [" and ".join(f"{mine} = {hit.table}.{other}" for mine, other in hit.met) + by]
    per = hit.granularity if by and len(hit.met) == 1 else "key"
    if hit.granularity != query.granularity and hit.query_rows_per_key >= SEVERAL:
        rows = f"{_average(hit.query_rows_per_key)} of your rows"
        parts.append(f"{rows} per {per} {_how_folded(query.aggregate)}")
    if hit.rows_per_key >= SEVERAL:
        parts.append(f"{_average(hit.rows_per_key)} rows per {per} {_how_folded(hit.aggregate)}")
    if hit.hosts is not None:
        parts.append(f"few keys, as in {count_of(hit.hosts, 'table')}")
    return printable("; ".join(parts))


def _how_folded(aggregate: str) -> str:
    # An index may name an aggregate that no covary has.
    return AGGREGATES[aggregate].words if aggregate in AGGREGATES else f"to their {aggregate}"


def _average(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")


def explanations_view(hits: Hits) -> RenderableType:
    """Say how hits joined: which columns met, how they were read, on how many rows and keys.

    Hits that joined in the same way share one explanation.
    """
    ways: dict[tuple[str, ...], list[str]] = {}
    for number, hit in enumerate(hits, start=1):
        ways.setdefault(tuple(_explanation(hit, hits.query)), []).append(
            f"{number}. {hit.table}.{column_of(hit)}"
        )
    return lines_of(line for way, columns in ways.items() for line in ("", "; ".join(columns), *way))


def _explanation(hit: Hit, query: QueryNote) -> list[str]:
    mine = query.table or "your table"
    lines = []
    for met in hit.explanation.columns if hit.explanation else ():
        lines.append(
            f"  {mine}.{met.query} ({met.query_reading}) met {hit.table}.{met.column} ({met.reading})"
        )
        lines += [f"    {own!r} and {other!r} are both {text!r}" for own, other, text in met.examples]
    if hit.granularity:
        by = "as they are" if hit.granularity == "moment" else f"by {hit.granularity}"
        lines.append(f"  times joined {by}")
    sides = (
        (mine, query.rows, hit.query_distinct_keys, hit.query_rows_per_key, query.aggregate),
        (hit.table, hit.rows, hit.distinct_keys, hit.rows_per_key, hit.aggregate),
    )
    for table, rows, keys, per_key, aggregate in sides:
        folded = "one row per key"
        if per_key >= SEVERAL:
            folded = f"{_average(per_key)} rows per key {_how_folded(aggregate)}"
        lines.append(f"  {table}: {count_of(rows, 'row')}, {count_of(keys, 'key')}, {folded}")
    lines.append(f"  {count_of(hit.join_size, 'key')} in both")
    return lines
