"""Peak memory of building a 50 M-row table against a 5 M-row one: it must not grow with the table."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from benchmarks.kernel import many_rows
from benchmarks.measure import Result

SMALL, LARGE = 5_000_000, 50_000_000
PART = 5_000_000
BUILD = "import covary, sys; covary.build_index(sys.argv[1], into=sys.argv[2], master='local[2]')"


def write_csv(file: Path, rows: int) -> None:
    for part in range(0, rows, PART):
        frame = many_rows(PART, 1_000_000, seed=part)
        with file.open("ab") as sink:
            frame.with_columns(pl.col("value").round(6)).write_csv(sink, include_header=part == 0)


def python_memory(root: int) -> int:
    """Resident bytes of a process and the Python processes below it.

    The JVM is left out: its heap grows to the limit it was given, whatever the work.
    """
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(status.parent.name)
        children.setdefault(int(fields["PPid"]), []).append(pid)
        is_python = fields["Name"].startswith("python")
        resident[pid] = int(fields.get("VmRSS", "0 kB").split()[0]) * 1024 if is_python else 0
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        total += resident.get(pid, 0)
        waiting += children.get(pid, [])
    return total


def peak_of_build(file: Path, index: Path) -> int:
    process = subprocess.Popen([sys.executable, "-c", BUILD, str(file), str(index)])
    peak = 0
    while process.poll() is None:
        peak = max(peak, python_memory(process.pid))
        time.sleep(0.1)
    if process.returncode:
        raise RuntimeError(f"the build of {file.name} failed")
    return peak


def memory_of_large_table() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for rows in (SMALL, LARGE):
            file = Path(folder, f"rows_{rows}.csv")
            write_csv(file, rows)
            peaks.append(peak_of_build(file, Path(folder, f"index_{rows}")))
    small, large = peaks
    return Result(
        "peak memory of building a 50 M-row CSV table relative to a 5 M-row one (all Python processes)",
        large / small,
        1.2,
        False,
        f"{large / 2**20:.0f} MiB and {small / 2**20:.0f} MiB",
    )
