"""The settings of a session of our own, by where its workers are."""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from covary.pipeline.scratch import lasting_folder

# The JVM hands out tasks and Python does the work: optimising the JVM's own code would take a core from it.
LIGHT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
THIS_MACHINE = re.compile(r"localhost|127\.\d+\.\d+\.\d+|\[::1\]")
TRIES = 4
OF_SUBMIT = "SPARK_SUBMIT_OPTS"
JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", OF_SUBMIT)
PYTHON_SETTING = re.compile(r"^[^\S\n]*spark\.pyspark\.python[\s=]+(\S+)", re.MULTILINE)


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
    return os.environ.get("PYSPARK_PYTHON") or _python_of_spark_defaults() or sys.executable


def _python_of_spark_defaults() -> str | None:
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and Path(home, "conf"))
    try:
        defaults = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8") if folder else ""
    except OSError:
        return None
    setting = PYTHON_SETTING.search(defaults)
    return setting.group(1) if setting else None
