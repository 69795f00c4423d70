"""What was done to an index, and in what state it is, for a person."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType

from covary.cli.words import count_of, duration, lines_of, names_of, size_of, table_of
from covary.index.check import Inspection
from covary.index.history import Change

DAMAGE_SHOWN = 20
COMMITS_SHOWN = 1_000
COUNTS = ("new", "changed", "removed", "lost", "kept", "skipped", "segments")  # of a commit


def describe_change(change: Change) -> str:
    """Say in a sentence which tables a commit touched."""
    if change.command == "compact":
        return f"Put {count_of(change.kept, 'table')} into {count_of(change.segments, 'segment')}."
    kinds = (("new", change.new), ("changed", change.changed))
    read = " and ".join(f"{count:,} {kind}" for kind, count in kinds if count)
    if change.command == "remove" and not change.removed:
        return f"Removed what was skipped or held nothing; {count_of(change.kept, 'table')} as before."
    if not (read or change.removed or change.lost):
        return f"Nothing has changed: {count_of(change.kept, 'table')} as before."
    parts = [f"read {read} {'table' if change.new + change.changed == 1 else 'tables'}"] if read else []
    if change.removed:
        parts.append(f"removed {count_of(change.removed, 'table')}")
    if change.lost:
        parts.append(f"lost {count_of(change.lost, 'table')} that can't be read any more")
    if change.kept:
        as_before = "as it was" if change.kept == 1 else "as they were"
        parts.append(f"left {count_of(change.kept, 'table')} {as_before}")
    sentence = ", ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def name_tables(change: Change) -> list[str]:
    """Name some of the tables that a commit touched."""
    return [
        f"{kind.capitalize()}: {names_of(change.names[kind], getattr(change, kind))}."
        for kind in ("new", "changed", "removed", "lost")
        if change.names.get(kind)
    ]


def done_view(index: str, change: Change) -> RenderableType:
    """Report what a command did to an index."""
    size = f"{index} now takes {size_of(change.bytes)} in {count_of(change.segments, 'segment')}"
    took = f"this took {duration(change.seconds * 1e3)}"
    return lines_of([describe_change(change), *name_tables(change), f"{size}; {took}."])


def history_view(changes: Sequence[Change], index: str) -> RenderableType:
    """List what was last done to an index, newest last."""
    table = table_of("when", "command", *(f"{name}>" for name in COUNTS), "size>", "took>")
    for change in changes[-COMMITS_SHOWN:]:
        when = datetime.fromtimestamp(change.time).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        counts = [f"{getattr(change, name):,}" for name in COUNTS]
        took = duration(change.seconds * 1e3)
        table.add_row(when, change.command, *counts, size_of(change.bytes), took)
    earlier = len(changes) - COMMITS_SHOWN
    if earlier <= 0:
        return table
    return Group(lines_of([f"{count_of(earlier, 'earlier commit')}: covary history {index} --json"]), table)


def inspection_view(check: Inspection, elapsed_ms: float) -> RenderableType:
    """Say what is damaged, or that nothing is."""
    read = f"{count_of(check.files, 'file')} of {count_of(check.segments, 'segment')}, {size_of(check.bytes)}"
    lines = [f"{check.index}: {read}, read in {duration(elapsed_ms)}."]
    if not check.damaged:
        lines.append("Every file is as it was written.")
    lines += [f"{file}: {reason}" for file, reason in list(check.damaged.items())[:DAMAGE_SHOWN]]
    if len(check.damaged) > DAMAGE_SHOWN:
        lines.append(f"and {len(check.damaged) - DAMAGE_SHOWN:,} more: covary check {check.index} --json")
    if check.left_over:
        lines.append(
            f"{count_of(len(check.left_over), 'left-over folder')} of a command that was stopped or is still "
            f"running; the next command that writes removes what is dead."
        )
    if check.not_ours:
        lines.append(f"Not written by covary, and left alone: {names_of(check.not_ours)}.")
    return lines_of(lines)
