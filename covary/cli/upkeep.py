"""The commands that look after an index: info, remove, compact, history, check."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from covary.cli import options
from covary.errors import CovaryError

if TYPE_CHECKING:
    from covary.index.history import Change


def info(index: options.IndexFolder, table: options.TableName = None, as_json: options.Json = False) -> None:
    """Tell what an index holds, with which settings, and what was skipped and why.

    covary info my.covary

    covary info my.covary --table weather
    """
    from covary.cli.index_view import TABLES_SHOWN, columns_view, info_view
    from covary.cli.terminal import console, print_json, show
    from covary.query.describe import describe_index

    summary = describe_index(index)
    chosen = summary.find_table(table) if table is not None else None
    if as_json and chosen:
        print_json(asdict(chosen))
    elif as_json:
        print_json(summary.to_dict() | {"contents": [asdict(each) for each in summary.contents]})
    else:
        most = TABLES_SHOWN if console().is_terminal else None
        show(columns_view(chosen) if chosen else info_view(summary, most))


def remove(index: options.IndexFolder, tables: options.Removed, as_json: options.Json = False) -> None:
    """Take tables out of an index: by name or path, by a glob of these, or a whole source.

    covary remove my.covary weather data/rain.csv

    covary remove my.covary 'tmp/*' data/old/

    A table stays away, though its source holds it, until you name its file, or a glob of it, to covary index.

    covary info lists what stays away.
    """
    from covary.build.upkeep import remove_tables

    _show_change(index, remove_tables(index, tables), as_json)


def compact(index: options.IndexFolder, as_json: options.Json = False) -> None:
    """Write an index anew without what was removed from it: smaller, and a little faster to ask.

    covary compact my.covary

    The files are then those of an index built at once from the same tables. Needs room for both on the disk.
    """
    from covary.build.upkeep import compact_index
    from covary.cli.progress import showing_work

    with showing_work("{done:,} of {total:,} tables merged") as report:
        change = compact_index(index, report)
    _show_change(index, change, as_json)


def _show_change(index: Path, change: "Change", as_json: bool) -> None:
    from covary.cli.change_view import done_view
    from covary.cli.terminal import print_json, show

    if as_json:
        print_json({"index": str(index)} | change.to_dict())
    else:
        show(done_view(str(index), change))


def history(index: options.IndexFolder, as_json: options.Json = False) -> None:
    """Tell what was done to an index: when, what was read, and what was removed.

    covary history my.covary
    """
    from covary.cli.change_view import history_view
    from covary.cli.terminal import print_json, show
    from covary.index.history import read_history

    changes = read_history(index)
    if as_json:
        print_json({"index": str(index), "history": [change.to_dict() for change in changes]})
    else:
        show(history_view(changes, str(index)))


def check(index: options.IndexFolder, as_json: options.Json = False) -> None:
    """Read every file of an index and say what is damaged, if anything is.

    covary check my.covary

    Exits with 2 if something is; covary index --into INDEX --repair then reads again what was lost.
    """
    from covary.cli.change_view import inspection_view
    from covary.cli.progress import showing_work
    from covary.cli.terminal import print_json, show
    from covary.index.check import check_index

    started = time.perf_counter()
    with showing_work("{done:,} of {total:,} files read") as report:
        inspection = check_index(index, report)
    elapsed_ms = (time.perf_counter() - started) * 1e3
    if as_json:
        print_json(asdict(inspection) | {"elapsed_ms": elapsed_ms})
    else:
        show(inspection_view(inspection, elapsed_ms))
    if inspection.damaged:
        raise CovaryError(
            f"{index} is damaged; covary index --into {index} --repair reads again what it lost"
        )
