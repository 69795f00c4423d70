"""What can be given to the commands, and the words of --help."""

from pathlib import Path
from typing import Annotated

import typer

from covary import __version__

HELP = """\
Which tables join with mine on this key and hold a column that moves together with mine, and how sure are we?

covary reads a collection of tables once and keeps a small sketch of every pair of a key column and a number \
column. Then it answers from the sketches in milliseconds, without joining anything.

\b
covary demo                                        see it work on real data
covary index data/ --into my.covary                read your tables, once
covary query sales.csv --key date --value revenue --index my.covary
                                                   ask what moves with revenue
"""
ONE_TABLE = (
    "a file or its URL, the folder of a Delta or Iceberg table, or a table of a database: "
    "shop.sqlite#orders, postgresql://host/db#orders."
)
AGGREGATES = "How rows of one key become one number: mean, sum, count, min, max, first or last."


def _argument(metavar: str, help: str) -> object:
    return typer.Argument(metavar=metavar, show_default=False, help=help)


def _required(metavar: str, help: str) -> object:
    return typer.Option(metavar=metavar, show_default=False, help=help)


def _flag(name: str, help: str) -> object:
    """Make an option without a value."""
    # Without a name typer adds a --no-...; without a metavar it shows the flag as if it took a <bool>.
    return typer.Option(name, metavar="", help=help)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"covary {__version__}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", metavar="", help="Print the version.", callback=_print_version, is_eager=True),
]
Table = Annotated[str, _argument("TABLE", f"Your table: {ONE_TABLE}")]
LeftTable = Annotated[str, _argument("LEFT", f"A table: {ONE_TABLE}")]
RightTable = Annotated[str, _argument("RIGHT", "Another.")]
Sources = Annotated[
    list[str] | None,
    _argument(
        "SOURCE",
        "Files, folders (with all below), globs and URLs (s3://bucket/folder); Delta and Iceberg tables; "
        "SQLite and DuckDB files, postgresql://host/db and other databases, whole or one table "
        "(shop.sqlite#orders); Spark's tables (spark:db.table). They are added to those that INDEX was made "
        "from; none: look at those again.",
    ),
]
Removed = Annotated[list[str], _argument("TABLE", "Names or paths of tables, globs of these, or sources.")]
IndexFolder = Annotated[Path, _argument("INDEX", "The index's folder.")]

Into = Annotated[Path, _required("INDEX", "The index's folder.")]
AskedIndex = Annotated[Path, _required("INDEX", "The index to ask.")]
Key = Annotated[str, _required("COLUMN", "The column to join on; or several, in any order: date,zip.")]
Value = Annotated[str, _required("COLUMN", "The column of numbers to explain.")]
LeftKey = Annotated[str, _required("COLUMN", "LEFT's key; or several columns, in any order: date,zip.")]
LeftValue = Annotated[str, _required("COLUMN", "LEFT's numbers.")]
RightKey = Annotated[str, _required("COLUMN", "RIGHT's key.")]
RightValue = Annotated[str, _required("COLUMN", "RIGHT's numbers.")]

Json = Annotated[bool, _flag("--json", "Print the same facts as JSON.")]
Strict = Annotated[
    bool,
    _flag(
        "--strict",
        "Exit with 2 if a table or source was skipped, or a table is damaged; the rest is indexed.",
    ),
]
IncludeOwn = Annotated[bool, _flag("--include-own", "Show the columns of TABLE itself too.")]

Fresh = Annotated[bool, _flag("--fresh", "Forget what the index holds and start over.")]
KeepMissing = Annotated[bool, _flag("--keep-missing", "Keep tables that are gone from their source.")]
Checksum = Annotated[
    bool, _flag("--checksum", "Tell by their content whether files changed, not by size and time.")
]
Repair = Annotated[
    bool, _flag("--repair", "Check every file of the index first, and read tables again that were damaged.")
]
TrustSources = Annotated[
    bool,
    _flag(
        "--trust-sources",
        "Read sources too that INDEX names and you never gave it on this machine; it remembers that.",
    ),
]
IndexSize = Annotated[
    int | None,
    typer.Option(
        "--size", metavar="N", show_default="1024", help="Keys per sketch; more is surer and larger."
    ),
]
IndexHash = Annotated[
    str | None,
    typer.Option(
        "--hash",
        metavar="NAME",
        show_default="xxhash64",
        help="xxhash64, or murmur3 for the paper's 32 bits.",
    ),
]
Size = Annotated[int, typer.Option(metavar="N", help="Keys per sketch; more is surer and larger.")]
Hash = Annotated[str, typer.Option(metavar="NAME", help="xxhash64, or murmur3 for the paper's 32 bits.")]
Aggregate = Annotated[str, typer.Option(metavar="NAME", help=AGGREGATES)]
Aggregates = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", show_default="mean", help=f"{AGGREGATES} Several give a sketch each."),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="Only these columns are keys; COLUMN,COLUMN is one key of two columns."
    ),
]
KeyText = Annotated[
    str | None,
    typer.Option(
        "--keys",
        metavar="NAME",
        show_default="canonical; exact with murmur3",
        help="canonical: 07030 meets 7030, 1/5/2013 meets 2013-01-05, MANHATTAN meets Manhattan, CIV meets "
        "Ivory Coast; or exact: raw text, as in the paper.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default="the finest that both sides have",
        help="Join times by hour, day, week, month, quarter or year.",
    ),
]
SmallNumbers = Annotated[
    bool,
    _flag("--small-numbers", "Show columns that share only numbers below 1,000 under another name, too."),
]
Explain = Annotated[bool, _flag("--explain", "Say of each hit how its keys met yours, with examples.")]
Values = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Only these columns are numbers.")]
Master = Annotated[
    str | None, typer.Option(metavar="URL", show_default="local[*]", help="The Spark master to run on.")
]
Remote = Annotated[
    str | None, typer.Option(metavar="URL", help="The Spark Connect server to run on, instead.")
]
TableTimeout = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        show_default="600, more for a large table",
        help="Skip a table that takes longer, or a part of a large one that does.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", show_default="1.5GB", help="Skip a table that a worker needs more memory for."
    ),
]
Measure = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="pearson; spearman or rin, by ranks, where outliers must not decide; or qn (robust), pm1 "
        "(bootstrap), kendall, distance (any dependence), chatterjee (a function).",
    ),
]
Rank = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What orders the hits: finite-population (|r|, less where little of the join was seen), the "
        "paper's s1 (|r|), s2, s3 or s4 (which depends on units), jc (overlap alone) or random.",
    ),
]
Interval = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default="influence; pm1 for pm1",
        help="influence (honest on skewed columns), fisher, pm1, or the paper's hoeffding, hoeffding-small. "
        "spearman and rin take the first two, kendall the first; qn, distance and chatterjee have none.",
    ),
]
Confidence = Annotated[
    float, typer.Option(metavar="SHARE", help="How often intervals hold the join's own correlation.")
]
MaxQ = Annotated[
    float | None,
    typer.Option(
        metavar="Q", help="Show only hits of at most this q: the share of chance among them, such as 0.05."
    ),
]
Correction = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Which q: bh (Benjamini-Hochberg), or by (Benjamini-Yekutieli: holds however the columns "
        "depend on each other, and lets fewer through).",
    ),
]
Null = Annotated[
    bool,
    _flag("--null", "Ask again with your numbers shuffled, and show the hits of chance beside the real."),
]
Shortlist = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="How many columns a dearer measure measures: the best by pearson (pm1) or spearman (the rest).",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Of shuffling, resampling and random ranking.")]
ResamplingSeed = Annotated[int, typer.Option("--seed", metavar="N", help="Of resampling.")]
Top = Annotated[int, typer.Option(metavar="N", help="How many columns to show.")]
TopPairs = Annotated[int, typer.Option("--top", metavar="N", help="How many pairs to show.")]
MinSample = Annotated[int, typer.Option(metavar="N", help="Hide columns that share fewer sampled keys.")]
Retrieve = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        show_default="all",
        help="Rank only the N columns with the largest overlap (the paper's way: 100).",
    ),
]
TableName = Annotated[
    str | None, typer.Option(metavar="NAME", help="Show what each column of this table serves as.")
]
Keep = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Keep the data and the index in this folder, to go on with."),
]
