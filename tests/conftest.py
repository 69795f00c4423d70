import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from adbc_driver_postgresql import dbapi
from hypothesis import HealthCheck, settings

from covary.index.commit import commit, open_draft
from covary.index.manifest import Manifest
from covary.index.segment_files import write_segment
from covary.index.segment_layout import build_segment
from covary.index.table_records import TableRecord
from covary.pipeline.process_runner import ProcessRunner
from covary.pipeline.session import start_session
from covary.pipeline.tasks import merge_chunks, sketch_chunk, sketch_group
from covary.query.ask import open_index
from covary.sketching.kernel import finish, sketch_rows
from covary.sketching.key_columns import exact_key

PASSWORD = "hush-hush"

settings.register_profile(
    "covary", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("covary")


def pytest_configure(config):
    """Keep what is noted here, and in processes started here, apart from the user's own notes."""
    folder = tempfile.TemporaryDirectory(prefix="covary-state-")
    os.environ["XDG_STATE_HOME"] = folder.name
    config.add_cleanup(folder.cleanup)
    os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and answers are laid out by it


# Not for every save: real servers and deaths, thousands of examples, whole experiments and pages.
SLOW_FOLDERS = {"contract", "docs", "experiments", "laws", "statistical", "torture"}
SLOW_FILES = {"test_sizes", "test_look_apart", "test_reading_process", "test_hostile_cells", "test_compiled"}


def pytest_collection_modifyitems(items):
    """Mark tests that start Spark or are slow; keep each file, and all of one session, in one process."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if "spark" in item.fixturenames:
            item.add_marker(pytest.mark.spark)
        starts_spark = item.get_closest_marker("spark") is not None
        if starts_spark or folder in SLOW_FOLDERS or item.path.stem in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
        shares_session = "spark" in item.fixturenames
        item.add_marker(pytest.mark.xdist_group("spark" if shares_session else f"{folder}/{item.path.stem}"))
    # What takes longest is begun first.
    items.sort(key=lambda item: ("spark" not in item.fixturenames, item.get_closest_marker("slow") is None))


@pytest.fixture(scope="session")
def spark():
    """One Spark session for the whole run, started by the first test that asks for it."""
    session = start_session(master="local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3_server():
    """Serve a real S3 API on loopback for the whole run, with credentials in the environment."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  (takes a second)

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        environment.setenv("AWS_ACCESS_KEY_ID", "testing")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield
    server.stop()


@dataclass(frozen=True)
class Database:
    """An empty database of a real PostgreSQL server, and who may do everything in it."""

    host: str
    name: str

    @property
    def url(self):
        return f"postgresql://covary:{PASSWORD}@{self.host}/{self.name}"

    def run(self, *statements):
        """Run statements, each a transaction of its own; return the last one's rows, if any."""
        with dbapi.connect(self.url, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="session")
def postgresql_server():
    """Run a PostgreSQL server of Debian's on loopback for the whole run; it asks for a password."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("there is no PostgreSQL server: apt-get install postgresql")
    # It refuses to run as root, and then needs a folder of its own outside of root's.
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="covary-postgresql-") as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        Path(folder, "password").write_text(PASSWORD)
        if user:
            for each in (folder, f"{folder}/password"):
                shutil.chown(each, "nobody", "nogroup")

        def run(program, *arguments):
            command = [programs[-1].with_name(program), "-D", f"{folder}/data", *arguments]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, **user)

        secure = ("-A", "scram-sha-256", f"--pwfile={folder}/password")
        run("initdb", "-U", "covary", *secure, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        how = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        run("pg_ctl", "-w", "-l", f"{folder}/log", "-o", how, "start")
        try:
            yield f"127.0.0.1:{port}"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")


@pytest.fixture
def database(postgresql_server):
    """An empty database; gone after the test."""
    server, fresh = Database(postgresql_server, "postgres"), Database(postgresql_server, "shop")
    server.run("CREATE DATABASE shop")
    yield fresh
    server.run("DROP DATABASE shop WITH (FORCE)")


@dataclass(frozen=True)
class Lake:
    """A folder of tables in several formats, and the correlation with `query` that each was made with."""

    folder: Path
    query: pl.DataFrame
    correlations: dict[str, float]


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    rng = np.random.default_rng(20210601)
    keys = [f"place {number}" for number in range(300)]
    x = rng.normal(size=300)
    noise = rng.normal(size=300)
    noise -= noise.mean() + (noise @ (x - x.mean())) / ((x - x.mean()) @ (x - x.mean())) * (x - x.mean())
    noise *= x.std() / noise.std()
    made = {"strong": 0.95, "middle": -0.7, "weak": 0.2, "none": 0.0}
    for name, write in (
        ("strong", lambda frame, path: frame.write_csv(f"{path}.csv")),
        ("middle", lambda frame, path: frame.write_parquet(f"{path}.parquet")),
        ("weak", lambda frame, path: frame.write_ipc(f"{path}.arrow")),
        ("none", lambda frame, path: frame.write_ndjson(f"{path}.jsonl")),
    ):
        r = made[name]
        y = r * (x - x.mean()) + np.sqrt(1 - r * r) * noise
        order = rng.permutation(300)
        frame = pl.DataFrame({"place": [keys[i] for i in order], "y": y[order], "z": rng.normal(size=300)})
        write(frame, folder / name)
    return Lake(folder, pl.DataFrame({"place": keys, "x": x}), made)


def _written_index(folder, tables, config):
    """Write an index of named ⟨keys, values⟩ without Spark, in two segments: numbers carry over."""
    made = []
    for name, (keys, values) in tables.items():
        numbers = {"v": pl.Series("v", values, dtype=pl.Float64)}
        partials = sketch_rows(pl.DataFrame({"k": keys}), [exact_key("k")], numbers, config, name)
        made.append((TableRecord(name, f"/lake/{name}.csv", len(keys)), finish(partials, config)))
    half = len(made) // 2
    with open_draft(folder) as draft:
        parts = (made[:half], made[half:])
        stored = [write_segment(build_segment(part), draft.folder) for part in parts]
        commit(draft, Manifest(config, tuple(stored)))
    return open_index(folder)


@pytest.fixture(scope="session")
def write_index():
    return _written_index


class RunnerHere(ProcessRunner):
    """Runs the tasks of a build in the test's own process, so that a test can patch what they call."""

    def run(self, plan, settings):
        for number, group in enumerate(plan.groups):
            sketch_group(number, group, settings)
        for number, table in enumerate(plan.large):
            # Backwards: the order in which chunks are done must not matter.
            done = [sketch_chunk(number, table, chunk, settings) for chunk in table.chunks[::-1]]
            merge_chunks(number, table, pa.Table.from_batches(done), settings)


@pytest.fixture(scope="session")
def runner_here():
    return RunnerHere()


@pytest.fixture(scope="session")
def in_memory():
    """Make a folder in memory, where there is such: what counts is what is written, not that it is kept."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def bytes_of():
    """Read every file of an index but those that tell when it was made, and by which process."""

    def read(index):
        files = [path for path in sorted(Path(index).rglob("*")) if path.is_file()]
        kept = [path for path in files if path.name not in {"history.jsonl", "lock"}]
        return {str(path.relative_to(index)): path.read_bytes() for path in kept}

    return read


@pytest.fixture
def mounted(tmp_path):
    """Make a small file system, so that the real errors of a full disk are met."""
    folders = []

    def mount(options):
        folder = tmp_path / f"disk{len(folders)}"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("no mount command: can't make a file system to fill up")
        if done.returncode:
            pytest.skip(f"can't mount a small file system: {done.stderr.strip()}")
        folders.append(folder)
        return folder

    yield mount
    for folder in folders:
        subprocess.run(["umount", "-l", str(folder)], check=True)
