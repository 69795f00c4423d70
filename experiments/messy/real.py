"""What is true of eight real tables, by eye: which columns are numbers, codes and keys."""

import calendar
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from experiments.messy.judging import FEWEST
from experiments.messy.truth import Columns, Identifier, NumberColumn, Table, Truth

# What the columns of the eight real tables are, by eye. Those not named here can fairly be read either way:
# CLASS SIZE (<15, 15, 16, ..., >34) and NUMBER OF STORIES (6, 14-21, 25-Oct, 5-9-12).
APM_NUMBERS = (
    "Total Cohort Num", "Total Grads Num", "Num achieving APM ", "Pct of cohort achieving APM",
    "Pct of graduates achieving APM",
)  # fmt: skip
CLASSES = ("GRADE LEVEL", "PROGRAM TYPE", "CORE SUBJECT", "SERVICE CATEGORY")
HOUSING_NUMBERS = (
    "NUMBER OF SECTION 8 TRANSITION APARTMENTS", "NUMBER OF CURRENT APARTMENTS", "TOTAL NUMBER OF APARTMENTS",
    "NUMBER OF RENTAL ROOMS", "AVG NO R/R PER APARTMENT", "POPULATION SECTION 8 TRANSITION",
    "POPULATION PUBLIC HOUSING", "TOTAL POPULATION", "NUMBER OF RESIDENTIAL BLDGS",
    "NUMBER OF NON-RESIDENTIAL BLDGS", "NUMBER OF STAIRHALLS", "TOTAL AREA SQ FT", "ACRES",
    "NET DEV AREA SQ FT", "EXCLUDING PARK ACRES", "BLDG COVERAGE SQ FT", "CUBAGE CU FT", "BLDG COVERAGE %",
    "DENSITY", "DEVELOPMENT COST", "PER RENTAL ROOM", "AVG MONTHLY GROSS RENT",
)  # fmt: skip
HOUSING_CODES = (
    "DATA AS OF", "DEVELOPMENT", "HUD AMP#", "TDS#", "CONSOLIDATED TDS#", "DEVELOPMENT EDP#",
    "OPERATING EDP#", "HUD #", "PROGRAM", "METHOD", "TYPE", "LOCATION STREET A", "LOCATION STREET B",
    "LOCATION STREET C", "LOCATION STREET D", "BOROUGH", "COMMUNITY DISTIRCT", "US CONGRESSIONAL DISTRICT",
    "NY STATE SENATE DISTRICT", "NY STATE ASSEMBLY DISTRICT", "NY CITY COUNCIL DISTRICT", "COMPLETION DATE",
    "FEDERALIZED DEVELOPMENT", "SENIOR DEVELOPMENT", "ELECTRICITY PAID BY RESIDENTS", "PRIVATE MANAGEMENT",
)  # fmt: skip
MONTHS = tuple(calendar.month_abbr)[1:]
COUNTED = ("NUMBER OF CLASSES", "NUMBER OF STUDENTS")


@dataclass(frozen=True, slots=True)
class RealTable:
    """What the columns of a real table are; the key is the one that most rows differ by."""

    key: tuple[str, ...]
    codes: tuple[str, ...]
    numbers: tuple[str, ...]


REAL = {
    "4s7y-vm5x": RealTable(
        CLASSES[:2], CLASSES[2:], (*COUNTED, "PERCENT OF STUDENTS IN PROGRAM / GRADE / SUBJECT")
    ),
    "5gxs-yzxw": RealTable(("DBN", "Cohort Year"), ("School Name", "Demographic"), APM_NUMBERS),
    "5mnh-r9st": RealTable(  # the columns are months, of 2001 to 2011, written 1-Jul
        ("CPR Data Type",),
        (),
        tuple(f"{n // 12 + 1}-{MONTHS[n % 12]}" for n in range(6, 126)),
    ),
    "evjd-dqpz": RealTable(
        ("DEVELOPMENT",), tuple(name for name in HOUSING_CODES if name != "DEVELOPMENT"), HOUSING_NUMBERS
    ),
    "i6as-kc83": RealTable(("DBN", "Cohort Year"), ("School Name",), APM_NUMBERS),
    "jhjm-vsp8": RealTable(("Indicator Name",), ("Agency",), tuple(map(str, range(2003, 2013)))),
    "s9xf-ztqu": RealTable(("DBN", "Cohort Year"), ("School Name", "Demographic"), APM_NUMBERS),
    "xefy-6ent": RealTable(
        CLASSES[:2],
        ("BOROUGH", *CLASSES[2:]),
        (*COUNTED, "PERCENT OF STUDENTS IN BOROUGH / GRADE / PROGRAM / SUBJECT"),
    ),
}
# Columns of the same name mean the same, and these do too.
MEANINGS = {"CPR Data Type": "Indicator Name"}
BOROUGHS = {"m": "manhattan", "k": "brooklyn", "q": "queens", "x": "bronx", "r": "staten island"}
NOT_ASKED_FOR = ("BOROUGH",)  # letters in one table, names in the other: more than formats is between them
ABSENT_KEYS = ("-", "")


def real_truth(folder: Path) -> Truth:
    """What is true of the eight real tables."""
    return Truth(0, tuple(_real_table(folder, name, known) for name, known in REAL.items()))


def _real_table(folder: Path, name: str, known: RealTable) -> Table:
    rows = pl.read_csv(folder / f"{name}.csv", infer_schema=False)
    numbers = [_real_numbers(rows[column], name) for column in known.numbers]
    return Table(
        name,
        f"{name}.csv",
        "csv",
        tuple(_real_identifier(rows[column]) for column in known.key),
        tuple(_real_identifier(rows[column]) for column in known.codes),
        tuple(sorted(numbers, key=lambda column: int(np.isnan(column.values).sum()))),
    )


def _real_identifier(cells: pl.Series) -> Identifier:
    texts = [" ".join((cell or "").split()).casefold() for cell in cells.to_list()]
    if cells.name == "BOROUGH":
        texts = [BOROUGHS.get(text, text) for text in texts]
    keys = tuple("" if text in ABSENT_KEYS else text for text in texts)
    meaning = MEANINGS.get(cells.name, cells.name)
    return Identifier(cells.name, meaning, "", "", cells.name not in NOT_ASKED_FOR, keys)


def _real_numbers(cells: pl.Series, table: str) -> NumberColumn:
    bare = cells.str.replace_all(r"[$,%\s]", "").cast(pl.Float64, strict=False)
    return NumberColumn(cells.name, table, None, 0.0, bare.fill_null(np.nan).to_numpy())


def real_questions(table: Table) -> list[Columns]:
    varied = [(code,) for code in table.codes if len(set(code.keys) - {""}) >= FEWEST]
    return [*table.questions, *varied]
