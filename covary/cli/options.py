"""What can be given to the commands, and the words of --help."""

from collections.abc import Callable
from inspect import Parameter
from pathlib import Path
from typing import Annotated

import typer

from covary import __version__
from covary.query.options import Function, explained_options, name_keywords, option_parameters

OPTIONS = dict(explained_options())
PARAMETERS = {each.name: each for each in option_parameters()}

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
KEYS_PER_SKETCH = "Keys per sketch; more is surer and larger."
HASHES = "xxhash64, or murmur3 for the paper's 32 bits."


def _argument(metavar: str, help: str) -> object:
    return typer.Argument(metavar=metavar, show_default=False, help=help)


def _option(metavar: str, help: str, default: str | bool = True, name: str | None = None) -> object:
    """Make an option with a value, named as its parameter is; `default` says what holds without it."""
    return typer.Option(*([name] if name else []), metavar=metavar, show_default=default, help=help)


def _required(metavar: str, help: str) -> object:
    return _option(metavar, help, default=False)


def _flag(name: str, help: str) -> object:
    """Make an option without a value."""
    # Without a name typer adds a --no-...; without a metavar it shows the flag as if it took a <bool>.
    return typer.Option(name, metavar="", help=help)


def query_options(*names: str, **changed: tuple[object, str]) -> Callable[[Function], Function]:
    """Give a command some options of a query: their defaults and words are those of covary.query.options.

    Only `changed` ones have a default and words that are this command's own.
    """

    def give(command: Function) -> Function:
        name_keywords(command, [_as_parameter(name, *changed.get(name, ())) for name in names])
        return command

    return give


def _as_parameter(name: str, default: object = None, words: str = "") -> Parameter:
    own = PARAMETERS[name]
    option = OPTIONS[name]
    words, default = words or option.words, default if words else own.default
    flags = f"--{name.replace('_', '-')}"
    if option.value:
        shown = option.none_means if default is None and option.none_means else True
        info = _option(option.value, words, shown, flags)
    else:
        info = _flag(flags, words)
    return own.replace(default=default, annotation=Annotated[own.annotation, info])


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

Json = Annotated[bool, _flag("--json", "Print the answer as JSON.")]
Strict = Annotated[
    bool,
    _flag(
        "--strict",
        "Exit with 2 if a table or source was skipped, or a table is damaged; the rest is indexed.",
    ),
]
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

Size = Annotated[int, _option("N", KEYS_PER_SKETCH)]
IndexSize = Annotated[int | None, _option("N", KEYS_PER_SKETCH, "1024", "--size")]
Hash = Annotated[str, _option("NAME", HASHES)]
IndexHash = Annotated[str | None, _option("NAME", HASHES, "xxhash64", "--hash")]
Aggregates = Annotated[
    list[str] | None,
    _option(
        "NAME", "How rows of one key become one number: {aggregates}. Several give a sketch each.", "mean"
    ),
]
Keys = Annotated[
    list[str] | None,
    _option("COLUMN", "Only these columns are keys; COLUMN,COLUMN is one key of two columns."),
]
Values = Annotated[list[str] | None, _option("COLUMN", "Only these columns are numbers.")]
KeyText = Annotated[
    str | None,
    _option(
        "NAME",
        "canonical: 07030 meets 7030, 1/5/2013 meets 2013-01-05, MANHATTAN meets Manhattan, CIV meets "
        "Ivory Coast; or exact: raw text, as in the paper.",
        "canonical; exact with murmur3",
        "--keys",
    ),
]
Runner = Annotated[
    str | None,
    _option(
        "NAME",
        "Who reads the tables: spark, or process: this machine alone, without Spark and Java.",
        "spark, where it is installed",
    ),
]
Master = Annotated[str | None, _option("URL", "The Spark master to run on.", "local[*]")]
Remote = Annotated[str | None, _option("URL", "The Spark Connect server to run on, instead.")]
TableTimeout = Annotated[
    float | None,
    _option(
        "SECONDS",
        "Skip a table that takes longer, or a part of a large one that does.",
        "600, more for a large table",
    ),
]
Memory = Annotated[str | None, _option("SIZE", "Skip a table that a worker needs more memory for.", "1.5GB")]
OwnMemory = Annotated[
    str | None, _option("SIZE", "End if your table takes more memory.", "half of what is free", "--memory")
]
TableName = Annotated[str | None, _option("NAME", "Show what each column of this table serves as.")]
Keep = Annotated[Path | None, _option("FOLDER", "Keep the data and the index in this folder, to go on with.")]
