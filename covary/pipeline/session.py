"""A Spark session: the caller's, one that is up, or one of our own. The only module that imports Spark."""

import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from covary.errors import CovaryError, MissingPart
from covary.pipeline.scratch import lasting_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The JVM hands out tasks and Python does the work: optimising the JVM's own code would take a core from it.
LIGHT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
THIS_MACHINE = re.compile(r"localhost|127\.\d+\.\d+\.\d+|\[::1\]")
TRIES = 4
OF_SUBMIT = "SPARK_SUBMIT_OPTS"
JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", OF_SUBMIT)
PYTHON_SETTING = re.compile(r"^[^\S\n]*spark\.pyspark\.python[\s=]+(\S+)", re.MULTILINE)
# Over twenty seconds: by then a server that died has lost the session. Spark's own fifteen take ten minutes.
CONNECT_RETRIES = 5
JVM_GREETING = re.compile(rb"WARNING: Using incubator modules: .*\n")
GREETING_BEGUN = re.compile(rb"WARNING: Using[^\n]*\Z")
HUSH = Event()  # while set, what the JVM of this process says is not passed on


@contextmanager
def open_session(
    spark: "SparkSession | None", master: str | None, remote: str | None
) -> Iterator["SparkSession"]:
    """Give the caller's session, or one that is already up, or one of our own that ends with the block."""
    running = spark or session_that_is_up()
    if running is not None:
        if spark is None and (master or remote):
            raise CovaryError(
                "a Spark session is already running here: pass it as spark=, or stop it before naming another"
            )
        yield running
        return
    handler = signal.getsignal(signal.SIGINT)
    own = start_session(master, remote)
    try:
        yield own
    finally:
        with suppress(Exception):  # a broken session can't be stopped; what broke it is on its way up
            if remote:
                _ask_again(own, 0)
            HUSH.set()  # threads of the JVM that lose their peers complain in a hundred lines
            own.stop()
        _on_interrupt(handler)


def running_session() -> "SparkSession":
    """Return the session that is up, or start a local one that stays."""
    return session_that_is_up() or start_session()


def session_that_is_up() -> "SparkSession | None":
    """Return the session of this process, if it has one."""
    if "pyspark.sql" not in sys.modules:
        return None
    sessions = sys.modules["pyspark.sql"].SparkSession
    # The active one is this thread's; another thread's is found by asking for the default one.
    return cast(
        "SparkSession | None", sessions.getActiveSession() or getattr(sessions, "_instantiatedSession", None)
    )


def start_session(master: str | None = None, remote: str | None = None) -> "SparkSession":
    """Start a Spark session of our own: quiet, without its web page, local unless told otherwise.

    Workers need covary's dependencies, not covary. They run the Python that PYSPARK_PYTHON names, else
    spark.pyspark.python of spark-defaults.conf, else the path of this one; those of a Spark Connect server
    run the server's.
    """
    require_spark(remote)
    from pyspark.sql import SparkSession  # noqa: PLC0415  (covary works without Spark until here)

    if not remote or remote.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = python_of_workers()  # elsewhere the server's own setting counts
    if remote:
        session = _start(SparkSession.builder.remote(remote))
        _ask_again(session, CONNECT_RETRIES)
        return session
    master = master or "local[*]"
    builder = SparkSession.builder.master(with_retries(master))
    for name, value in session_settings(master).items():
        builder = builder.config(name, value)
    return _start(builder)


def require_spark(remote: str | None = None) -> None:
    """Refuse to go on where there is no PySpark, or no Java for a session of this machine's own."""
    if find_spec("pyspark") is None:
        raise MissingPart("Spark is not installed: pip install 'covary[spark]'")
    if remote:
        return
    java_home = os.environ.get("JAVA_HOME")
    if java_home and not os.access(Path(java_home, "bin", "java"), os.X_OK):
        raise MissingPart(f"JAVA_HOME is {java_home}, but there is no bin/java in it: correct or unset it")
    if not (java_home or shutil.which("java")):
        raise MissingPart("Spark needs Java 17 or newer: apt install default-jre-headless")


def _ask_again(session: Any, times: int) -> None:
    """Say how often a Spark Connect server is asked again that does not answer."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415

    session.client.set_retry_policies([DefaultPolicy(max_retries=times)])


def is_local(spark: "SparkSession") -> bool:
    """Whether a session's tasks run on this machine, by this Python, and see its files."""
    if "connect" in type(spark).__module__:  # the server's master is local to the server
        return False
    return is_local_master(spark.conf.get("spark.master", None) or "")


def _start(builder: "SparkSession.Builder") -> "SparkSession":
    """Start a session that tells the user of its errors, but not of itself, nor of being interrupted."""
    interrupted, started = Event(), Event()
    HUSH.clear()

    def interrupt(*_: object) -> None:
        again = interrupted.is_set()
        interrupted.set()
        HUSH.set()
        # A JVM whose start is broken off would never end; so the first interruption waits until it is up.
        if started.is_set() or again:
            raise KeyboardInterrupt

    with _filtered_stderr(HUSH):
        _on_interrupt(interrupt)
        try:
            with private_java():
                session = builder.getOrCreate()
        finally:
            started.set()
    # In place of PySpark's handler, which asks the JVM to cancel jobs while an answer of it is being read.
    _on_interrupt(interrupt)
    if interrupted.is_set():
        session.stop()
        raise KeyboardInterrupt
    return session


def _on_interrupt(handler: Callable[[int, FrameType | None], object] | int | None) -> None:
    if current_thread() is main_thread():  # no other thread may set it, nor is interrupted
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _filtered_stderr(hush: Event) -> Iterator[None]:
    """Pass on what a JVM started in the block says, as long as it lives and is not hushed.

    Its greeting is left out: Spark asks for a module that Java warns of, and the warning has no switch.
    """
    try:
        user = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    source, sink = os.pipe()
    os.dup2(sink, 2)
    os.close(sink)
    Thread(target=_pass_on, args=(source, os.dup(user), hush), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(user, 2)
        os.close(user)


def _pass_on(source: int, sink: int, hush: Event) -> None:
    held = b""
    while chunk := os.read(source, 1 << 16):
        text = JVM_GREETING.sub(b"", held + chunk)
        begun = GREETING_BEGUN.search(text)
        held = begun.group() if begun else b""
        if not hush.is_set():
            os.write(sink, text.removesuffix(held))
    os.write(sink, held)
    os.close(source)
    os.close(sink)


def is_local_master(master: str) -> bool:
    """Whether a master's tasks run on this machine, by this Python."""
    return master.startswith("local") and not master.startswith("local-cluster")


def with_retries(master: str) -> str:
    """Let a local master try a task again whose worker died, as clusters do; unless it says how often."""
    cores = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    return f"local[{cores[1] or 1},{TRIES}]" if cores else master


def session_settings(master: str) -> dict[str, str]:
    """Give the settings of a session of our own."""
    settings = {
        "spark.app.name": "covary",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.driver.extraJavaOptions": f"{LIGHT_JAVA} -Dlog4j2.configurationFile=file:{LOG_SETTINGS}",
    }
    if is_local_master(master) or THIS_MACHINE.match(urlsplit(master).netloc):
        # This machine's own name may lead nowhere; elsewhere it is what workers find the driver by.
        settings["spark.driver.host"] = "localhost"
    return settings


@contextmanager
def private_java() -> Iterator[None]:
    """Have a JVM that is started in the block keep its temporary files, and Spark's, where nobody else looks.

    Unless the user said where. What Spark is told, by spark.local.dir or SPARK_LOCAL_DIRS, goes first anyway.
    """
    given = os.environ.get(OF_SUBMIT)
    if any("java.io.tmpdir" in os.environ.get(name, "") for name in JAVA_OPTIONS):
        yield
        return
    here = f"-Djava.io.tmpdir={shlex.quote(str(lasting_folder()))}"
    os.environ[OF_SUBMIT] = f"{given} {here}" if given else here
    try:
        yield
    finally:
        del os.environ[OF_SUBMIT]
        if given is not None:
            os.environ[OF_SUBMIT] = given


def python_of_workers() -> str:
    """Say which Python workers are to run: PYSPARK_PYTHON, spark.pyspark.python, or the path of this one.

    The second is looked for in spark-defaults.conf: PySpark itself reads it only under spark-submit. The last
    is right on this machine, and on clusters whose machines are alike.
    """
    if named := os.environ.get("PYSPARK_PYTHON"):
        return named
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and Path(home, "conf"))
    with suppress(OSError):
        defaults = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8") if folder else ""
        if setting := PYTHON_SETTING.search(defaults):
            return setting[1]
    return sys.executable
