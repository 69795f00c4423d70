"""What came of messy tables, in Markdown."""

from collections import Counter
from collections.abc import Sequence

from experiments.measured.coverage import folded
from experiments.messy.judging import FALSE, FEWEST, MISTAKABLE, USUAL, Join, Outcome, Refusal
from experiments.messy.reading import Column
from experiments.writing import table as markdown

LISTED = 40  # failures of a kind
SAME = 1e-6  # how close two correlations are that are the same but for rounding


def parts_of(outcome: Outcome) -> dict[str, str]:
    """The parts of a page on one collection; what is said of the default, min_sample 10, comes first."""
    failures = (*_reading_failures(outcome), *_failures(outcome), _falsehoods(outcome))
    return {
        "summary": _summary(outcome),
        "joins": _by_label(outcome),
        "failures": "\n\n".join(part for part in failures if part) or "Nothing fails.",
    }


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})" if whole else "–"


def _summary(outcome: Outcome) -> str:
    reading = outcome.reading
    read = len(reading.numbers) - len(reading.missed)
    misread = "not compared" if reading.wrong is None else _share(len(reading.wrong), read)
    rows = [
        ("tables; questions; refused", f"{outcome.tables}; {outcome.questions}; {len(outcome.refusals)}"),
        ("number columns read as numbers", _share(read, len(reading.numbers))),
        ("of these, with other numbers than are there", misread),
        ("code and key columns taken for numbers", _share(len(reading.taken), len(reading.codes))),
    ]
    for least in (USUAL, FEWEST):
        for kind, what in (
            ("key", "whole keys"),
            ("part", "parts of keys"),
            ("code", "code columns"),
            (None, "all"),
        ):
            expected = outcome.expected(least, kind)
            found = sum(join.found >= least for join in expected)
            rows.append((f"true joins found, {what}, min_sample {least}", _share(found, len(expected))))
        reported = outcome.reported(least)
        for verdicts in ((FALSE,), (MISTAKABLE,), (FALSE, MISTAKABLE)):
            named = " or ".join(verdicts)
            count = len(outcome.reported(least, *verdicts))
            rows.append(
                (f"reported joins that are {named}, min_sample {least}", _share(count, len(reported)))
            )
    exact = [join for join in outcome.joins if join.truth is not None and join.correlation is not None]
    same = sum(abs(join.truth - join.correlation) <= SAME for join in exact)
    found = [join for join in outcome.expected(FEWEST) if join.found]
    met = _share(sum(min(join.found, join.shared) for join in found), sum(join.shared for join in found))
    rows += [
        ("shared keys that met, of joins found", met),
        ("exact joins of just the shared keys", _share(sum(j.found == j.shared for j in exact), len(exact))),
        ("exact correlations that are right", _share(same, len(exact))),
    ]
    return markdown(("", ""), rows)


def _reading_failures(outcome: Outcome) -> list[str]:
    reading = outcome.reading
    parts = (
        ("Numbers not read as numbers", reading.missed, reading.numbers),
        ("Codes taken for numbers", reading.taken, reading.codes),
        ("Numbers read as others", reading.wrong or (), reading.numbers),
    )
    return [f"{title}:\n\n{_by_style(*columns)}" for title, *columns in parts if columns[0]]


def _by_style(columns: Sequence[Column], every: Sequence[str]) -> str:
    groups: dict[str, list[Column]] = {}
    for column in columns:
        groups.setdefault(column.style, []).append(column)
    of_style = Counter(every)
    rows = []
    for style, group in sorted(groups.items(), key=lambda each: -len(each[1])):
        marks = Counter("none" if each.mark is None else f"`{each.mark}`" for each in group).most_common()
        marked = ", ".join(f"{mark} {count}" for mark, count in marks)
        example = f"{group[0].table}.{group[0].name}: {group[0].said}"
        rows.append((style, f"{len(group)} of {of_style[style]}", marked, example))
    return _listing(("style", "columns", "marks of absence", "for example"), rows)


def _listing(heading: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    more = f"\n\n... and {len(rows) - LISTED} rows more." if len(rows) > LISTED else ""
    return f"{markdown(heading, rows[:LISTED])}{more}"


def _by_label(outcome: Outcome) -> str:
    """How the joins of each domain fared."""
    groups: dict[tuple[str, str], list[Join]] = {}
    for join in outcome.expected(FEWEST):
        groups.setdefault((join.kind, join.label), []).append(join)
    rows = []
    for (kind, label), joins in sorted(groups.items()):
        found = [join for join in joins if join.found]
        usual = [join for join in joins if join.shared >= USUAL]
        exact = [join for join in found if join.truth is not None and join.correlation is not None]
        rows.append(
            (
                label,
                kind,
                _share(sum(join.found >= USUAL for join in usual), len(usual)),
                _share(len(found), len(joins)),
                _share(sum(min(j.found, j.shared) for j in found), sum(j.shared for j in found)),
                _share(sum(abs(j.truth - j.correlation) <= SAME for j in exact), len(exact)),
            )
        )
    found_at = (f"found, min_sample {least}" for least in (USUAL, FEWEST))
    heading = ("keys", "kind", *found_at, "shared keys that met", "r right")
    return markdown(heading, rows)


def _failures(outcome: Outcome) -> list[str]:
    """The pairs of styles that were not found, and the questions that were refused."""
    expected = outcome.expected(FEWEST)
    usual = [join for join in expected if join.shared >= USUAL]
    few = [join for join in expected if join.shared < USUAL]
    parts = []
    if rows := _missed_by_style(usual, USUAL):
        parts.append(f"True joins on {USUAL} keys or more that were not found:\n\n{rows}")
    said = Counter(_without_names(refusal) for refusal in outcome.refusals)
    if said:
        parts.append(f"Questions refused:\n\n{_listing(('said', 'questions'), said.most_common())}")
    if rows := _missed_by_style(few, FEWEST):
        title = f"True joins on {FEWEST} to {USUAL - 1} keys that were not found with min_sample {FEWEST}"
        parts.append(folded(title, rows))
    return parts


def _missed_by_style(joins: Sequence[Join], least: int) -> str:
    groups: dict[tuple[str, str], list[Join]] = {}
    for join in joins:
        groups.setdefault((join.label, join.styles), []).append(join)
    rows = []
    for (label, styles), group in groups.items():
        lost = [join for join in group if join.found < least]
        if lost:
            example = f"{lost[0].asked}.{lost[0].key} → {lost[0].table}.{lost[0].joined}"
            rows.append((label, styles, f"{len(lost)} of {len(group)}", example))
    rows.sort(key=lambda row: -int(row[2].split()[0]))
    return _listing(("keys", "styles", "not found", "for example"), rows) if rows else ""


def _without_names(refusal: Refusal) -> str:
    said = refusal.said.partition("; did you mean")[0].partition(", for example")[0]
    for name in (refusal.table, repr(refusal.key), repr(refusal.value)):
        said = said.replace(name, "…")
    return said


def _falsehoods(outcome: Outcome) -> str:
    wrong = outcome.reported(FEWEST, FALSE, MISTAKABLE)
    groups: dict[tuple[str, str], list[Join]] = {}
    for join in wrong:
        groups.setdefault((join.verdict, join.label), []).append(join)
    rows = [
        (
            verdict,
            label,
            sum(join.found >= USUAL for join in joins),
            len(joins),
            f"{joins[0].asked}.{joins[0].key} → {joins[0].table}.{joins[0].joined} ({joins[0].found} keys)",
        )
        for (verdict, label), joins in sorted(groups.items(), key=lambda each: (each[0][0], -len(each[1])))
    ]
    heading = ("verdict", "keys", *(f"min_sample {least}" for least in (USUAL, FEWEST)), "for example")
    return f"Reported joins that are none:\n\n{_listing(heading, rows)}" if rows else ""
