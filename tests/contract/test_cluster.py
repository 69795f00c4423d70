"""covary on clusters: real processes on loopback, whose Python has covary's dependencies but not covary."""

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pyspark
import pytest

import covary

ROOT = Path(covary.__file__).parents[1]
SPARK_HOME = Path(pyspark.__file__).parent
HERE = "127.0.0.1"
PATIENCE = 120.0
CHUNK_BYTES = 80_000
# Java that starts in half the time: nothing here lives long enough to be worth optimising.
OF_SPARK = {"SPARK_HOME": str(SPARK_HOME), "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
# Of a session that the tests or the caller of them have: not for the processes started here.
NOT_FOR_CHILDREN = (
    "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_HOME",
    "SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_CONF_DIR",
)  # fmt: skip

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc"),
]


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not (met := condition()):
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.05)
    return met


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name not in NOT_FOR_CHILDREN}
    return {**kept, "SPARK_LOCAL_IP": HERE, **more}


def free_port():
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        return probe.getsockname()[1]


def answers(port):
    with suppress(OSError):
        socket.create_connection((HERE, port), 1).close()
        return True
    return False


class Machines:
    """Processes that stand for machines: each is killed with all that it started."""

    def __init__(self, folder):
        self.folder = folder
        self.hidden = folder / "hidden"
        self.hidden.mkdir()
        self.running = []
        self.hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', str(self.hidden)]
        try:
            tried = subprocess.run([*self.hide, "true"], capture_output=True, text=True, check=False)
            self.why_not_hidden = tried.stderr.strip() if tried.returncode else None
        except FileNotFoundError as problem:
            self.why_not_hidden = str(problem)

    def start(self, name, command, hiding=False, **variables):
        command = [*self.hide, *command] if hiding and not self.why_not_hidden else command
        with (self.folder / f"{name}.log").open("wb") as log:
            machine = subprocess.Popen(
                list(map(str, command)), env=environment(**variables), cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.running.append(machine)
        return machine

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def kill(self, machine):
        self.signal(machine, signal.SIGKILL)
        machine.wait()

    def signal(self, machine, number):
        for process in filter(str.isdigit, os.listdir("/proc")):
            with suppress(ProcessLookupError):
                if os.getsid(int(process)) == machine.pid:
                    os.kill(int(process), number)

    def covary(self, name, *arguments, python=""):
        """Start the command line."""
        variables = {"PYSPARK_PYTHON": str(python)} if python else {}
        command = [sys.executable, "-m", "covary", *arguments]
        return self.start(name, command, PYTHONPATH=str(ROOT), **variables)


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    machines = Machines(tmp_path_factory.mktemp("machines"))
    yield machines
    for machine in machines.running:
        machines.kill(machine)


def python_without_covary(folder):
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    variables = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", variables))
    for scheme in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(scheme).iterdir():
            if "covary" not in entry.name and entry.name != "__pycache__":
                (packages / entry.name).symlink_to(entry)
    found = subprocess.run(
        [python, "-c", "import polars, covary"],
        env=environment(), cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stderr.strip().endswith("ModuleNotFoundError: No module named 'covary'")
    return python, packages


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    return python_without_covary(tmp_path_factory.mktemp("bare"))[0]


@pytest.fixture(scope="module")
def outdated_python(tmp_path_factory):
    """A Python with a covary that must not be the one that runs."""
    python, packages = python_without_covary(tmp_path_factory.mktemp("outdated"))
    (packages / "covary").mkdir()
    (packages / "covary" / "__init__.py").write_text("raise RuntimeError('the installed covary was loaded')")
    return python


@pytest.fixture(scope="module")
def master(machines):
    """The address of a standalone master, and of its page."""
    port, page = free_port(), free_port()
    command = [SPARK_HOME / "bin/spark-class", "org.apache.spark.deploy.master.Master", "--host", HERE]
    machines.start("master", [*command, "--port", port, "--webui-port", page], **OF_SPARK)
    wait_until(lambda: answers(port) and answers(page), "a master")
    return f"spark://{HERE}:{port}", f"http://{HERE}:{page}/json/"


@pytest.fixture(scope="module")
def workers(machines, master):
    address, page = master
    command = [SPARK_HOME / "bin/spark-class", "org.apache.spark.deploy.worker.Worker", "--host", HERE]
    command += ["--cores", 1, "--memory", "1g"]
    started = [
        machines.start(
            f"worker{number}",
            [*command, "--webui-port", 0, "--work-dir", machines.folder / f"work{number}", address],
            hiding=True,
            **OF_SPARK,
        )
        for number in range(2)
    ]  # fmt: skip

    def both_are_there():
        with urllib.request.urlopen(page) as answer:
            return json.load(answer)["aliveworkers"] == 2

    wait_until(both_are_there, "two workers")
    return started


@pytest.fixture(scope="module")
def connect_process(machines, bare_python):
    """A Spark Connect server that may not be up yet."""
    port = free_port()
    command = [
        SPARK_HOME / "bin/spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]", "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.ui.enabled=false", "spark-internal",
    ]  # fmt: skip
    server = machines.start("connect", command, hiding=True, PYSPARK_PYTHON=str(bare_python), **OF_SPARK)
    return server, port


@pytest.fixture(scope="module")
def connect_server(connect_process):
    """A Spark Connect server, its process and its address."""
    server, port = connect_process
    wait_until(lambda: answers(port), "a Spark Connect server")
    return server, f"sc://{HERE}:{port}"


@pytest.fixture(scope="module")
def tables(tmp_path_factory, lake):
    """Small tables, and one to be read in chunks."""
    folder = tmp_path_factory.mktemp("tables")
    for table in lake.folder.iterdir():
        (folder / table.name).write_bytes(table.read_bytes())
    write_table(folder / "chunks.csv", 5000)
    return folder


@pytest.fixture(scope="module")
def many_tables(tmp_path_factory):
    """Enough to read that a build is seen in the middle: each table is a task's group of its own."""
    folder = tmp_path_factory.mktemp("many")
    write_table(folder / "table0.csv", 60_000)
    for number in range(1, 20):
        (folder / f"table{number}.csv").hardlink_to(folder / "table0.csv")
    return folder


def write_table(path, rows):
    rng = np.random.default_rng(rows)
    places = [f"place {number}" for number in rng.integers(0, rows // 10, rows)]
    numbers = {name: rng.normal(size=rows) for name in "wxyz"}
    pl.DataFrame({"place": places, **numbers}).write_csv(path)


@pytest.fixture(scope="module")
def expected(bytes_of, tables, tmp_path_factory):
    """The index that one process makes of the tables."""
    folder = tmp_path_factory.mktemp("expected") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("covary.pipeline.plan.CHUNK_BYTES", CHUNK_BYTES)
        covary.build_index(tables, folder, size=64, runner="process")
    return bytes_of(folder)


BUILDS = """
import json, sys
import covary, worker_facts
from covary.pipeline import plan as plans
from covary.pipeline.send_code import as_task
from covary.pipeline.session import open_session

master, remote, sources, chunk_bytes, indexes = json.loads(sys.argv[1])
plans.CHUNK_BYTES = chunk_bytes
sent, most_done = [], []

with open_session(None, master, remote) as spark:
    send = spark.addArtifacts
    spark.addArtifacts = lambda *files, **kind: (sent.append(files), send(*files, **kind))
    for index in indexes:
        done = []
        covary.build_index(sources, index, spark, size=64, on_progress=lambda now: done.append(now.done))
        most_done.append(max(done))
    send(worker_facts.__file__, pyfile=True)
    asked = spark.range(0, 1, 1, 1).mapInArrow(as_task(worker_facts.tell), "covary string, threads long")
    told = asked.collect()[0]
print(json.dumps({"sent": len(sent), "done": most_done, "covary": told.covary, "threads": told.threads}))
"""


WORKER_FACTS = """
import pyarrow as pa

def tell(batches):
    import covary.pipeline.tasks, polars
    for batch in batches:
        facts = {"covary": covary.__file__, "threads": polars.thread_pool_size()}
        yield pa.RecordBatch.from_pylist([facts])
"""


def run_builds(machines, name, tables, python="", master=None, remote=None):
    """Build two indexes in one session: in a folder that workers share, and in one that they don't see."""
    folders = [machines.folder / f"{name}-index", machines.hidden / f"{name}-index"]
    given = json.dumps([master, remote, str(tables), CHUNK_BYTES, list(map(str, folders))])
    (machines.folder / name).mkdir()
    (machines.folder / name / "worker_facts.py").write_text(WORKER_FACTS)
    variables = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(machines.folder / name)])}
    variables |= {"PYSPARK_PYTHON": str(python)} if python else {}
    driver = machines.start(name, [sys.executable, "-c", BUILDS, given], **variables)
    assert driver.wait(PATIENCE) == 0, machines.log(name)[-3000:]
    return json.loads(machines.log(name).splitlines()[-1]), folders


def stopped_in_a_task(machines, workers, index):
    """Stop a worker that is reading a table, which is the one that has the log of a task open."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            for open_file in Path("/proc", process, "fd").iterdir():
                log = open_file.readlink()
                if log.is_relative_to(index) and log.name.startswith("group-"):
                    worker = next(one for one in workers if one.pid == os.getsid(int(process)))
                    machines.signal(worker, signal.SIGSTOP)
                    if log.read_text().count("done") < log.read_text().count("reading"):
                        return worker, log
                    machines.signal(worker, signal.SIGCONT)
    return None


@pytest.fixture(scope="module")
def bereft(machines, master, many_tables, bare_python, request):
    """The index of a build that began without workers and lost one of the two that came."""
    index = machines.folder / "bereft-index"
    given = ["index", many_tables, "--into", index, "--master", master[0], "--size", "64"]
    command = machines.covary("bereft", *given, python=bare_python)
    request.getfixturevalue("connect_process")  # starts in time that would be spent waiting
    wait_until(lambda: "Waiting for a Spark worker" in machines.log("bereft"), "word of the waiting")
    assert command.poll() is None
    workers = request.getfixturevalue("workers")
    found = wait_until(lambda: stopped_in_a_task(machines, workers, index), "a worker reading a table")
    worker, log = found
    machines.kill(worker)
    wait_until(lambda: log.read_text().count("reading") == 2, "the other worker reading that table")
    assert command.wait(PATIENCE) == 0, machines.log("bereft")
    return index


@pytest.fixture(scope="module")
def on_the_cluster(machines, master, bereft, tables, outdated_python):
    return run_builds(machines, "on-the-cluster", tables, outdated_python, master=master[0])


@pytest.fixture(scope="module")
def through_connect(machines, connect_server, tables):
    return run_builds(machines, "through-connect", tables, remote=connect_server[1])


BOTH = pytest.mark.parametrize("built", ["on_the_cluster", "through_connect"])


def test_a_build_waits_for_workers_and_outlives_one_killed_while_it_reads(
    bytes_of, bereft, many_tables, tmp_path
):
    covary.build_index(many_tables, tmp_path / "alone", size=64, runner="process")
    assert bytes_of(bereft) == bytes_of(tmp_path / "alone")


@BOTH
def test_workers_run_the_covary_that_was_sent_and_it_is_sent_once(built, request):
    told, _ = request.getfixturevalue(built)
    assert told["sent"] == 1
    assert Path(told["covary"]).parent.parent.suffix == ".zip"


@BOTH
def test_polars_has_one_thread_in_a_worker(built, request):
    assert request.getfixturevalue(built)[0]["threads"] == 1


@BOTH
def test_a_build_gives_the_bytes_of_one_process(bytes_of, built, expected, request):
    told, (shared, _) = request.getfixturevalue(built)
    assert bytes_of(shared) == expected
    assert told["done"][0] == 5


@BOTH
def test_workers_need_not_see_the_folder_of_the_index(bytes_of, built, expected, machines, request):
    if machines.why_not_hidden:
        pytest.skip(f"can't hide a folder from a process: {machines.why_not_hidden}")
    told, (_, hidden) = request.getfixturevalue(built)
    assert bytes_of(hidden) == expected
    assert told["done"][1] == 0  # nobody but this process saw the folder, so nobody noted there what was done


def test_only_queries_run_through_connect(machines, connect_server, tmp_path):
    folder = machines.folder / "kept"
    folder.mkdir()
    (folder / "precious").write_text("mine")
    query = "spark:SELECT id AS place, id * id AS y FROM range(100)"
    command = f"spark:INSERT OVERWRITE DIRECTORY '{folder}' USING csv OPTIONS ('a' = 'b') SELECT 1"
    dropped = "spark:EXECUTE IMMEDIATE 'DROP DATABASE default CASCADE'"
    arguments = ["--into", tmp_path / "index", "--remote", connect_server[1], "--strict"]
    build = machines.covary("queries", "index", query, command, dropped, *arguments)
    assert build.wait(PATIENCE) == 2, machines.log("queries")
    problems = dict(covary.open_index(tmp_path / "index").tables.select("path", "problem").iter_rows())
    assert problems[query] is None
    assert "may start a program" in problems[command]
    assert "takes it for no query" in problems[dropped]
    assert (folder / "precious").read_text() == "mine"


def test_a_connect_server_that_dies_leaves_the_index_and_one_line(
    bytes_of, machines, connect_server, lake, many_tables, tmp_path
):
    server, address = connect_server
    index = tmp_path / "index"
    arguments = ["--into", index, "--remote", address, "--size", "64"]
    first = machines.covary("before", "index", lake.folder, *arguments)
    assert first.wait(PATIENCE) == 0, machines.log("before")
    covary.build_index(lake.folder, tmp_path / "alone", size=64, runner="process")
    assert bytes_of(index) == bytes_of(tmp_path / "alone")
    second = machines.covary("orphan", "index", many_tables, *arguments)
    wait_until(lambda: list(index.glob(".building-*/parts/group-*")), "a first part of the index")
    machines.kill(server)
    assert second.wait(PATIENCE) == 2
    *before, last = machines.log("orphan").splitlines()
    assert last.startswith(f"covary: Spark at {address} failed: it does not answer any more (")
    assert all("tables" in line for line in before), before
    assert bytes_of(index) == bytes_of(tmp_path / "alone")
