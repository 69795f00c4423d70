"""What goes wrong with Spark, put in one line: addresses that lead nowhere, and failures on the way."""

import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from urllib.parse import urlsplit

from covary.errors import CovaryError, TaskFailed
from covary.secrets import Secrets, shown_url, without_secrets

SECONDS_TO_CONNECT = 5.0
OUR_ERROR = re.compile(r"^covary\.errors\.\w++: (.++)$", re.MULTILINE)  # as a worker's traceback ends
LONGEST_REASON, LONGEST_READ = 300, 20_000
PORTS = {"spark": 7077, "sc": 15002}
LOCAL = r"local(\[(\d+|\*)(,\d+)?\])?"
MASTERS = re.compile(rf"{LOCAL}|local-cluster\[.+\]|(spark|k8s)://.+|yarn")
REMOTES = re.compile(rf"{LOCAL}|sc://.+")
MODULES = {"pyspark", "py4j", "grpc"}
LOST_CONNECTION, DETAILS, END_OF_DETAILS = "RPC that terminated with:", 'details = "', re.compile(r'"$', re.M)
STOPPED_CONTEXT = "Cannot call methods on a stopped SparkContext"
# What workers lack, by what Spark says of it; the names are in the patterns' groups.
WORKERS_LACK = (
    (
        re.compile(r"ModuleNotFoundError: No module named '(?!covary)(\w+)"),
        "Spark's workers have no Python package {}: for their Python, run pip install 'covary[spark]', "
        "or name one that has it in PYSPARK_PYTHON",
    ),
    (
        re.compile(r"PYTHON_VERSION_MISMATCH\D*+(\d++(?:\.\d++)*)\D*+(\d++(?:\.\d++)*)"),
        "Spark's workers run Python {} and this is Python {}, which must be the same: "
        "name one of this version in PYSPARK_PYTHON, or run covary with theirs",
    ),
    (
        re.compile(r"EndedEarly: (.+)"),
        "on Spark's workers, {}",
    ),
    (
        re.compile(r'Cannot run program "([^"\n]++)": .*No such file'),
        "Spark's workers have no Python at {}: name theirs in PYSPARK_PYTHON",
    ),
)


def check_address(master: str | None, remote: str | None) -> None:
    """Refuse an address that can't be one, or where nobody answers: Spark keeps knocking for minutes."""
    if master and remote:
        raise CovaryError("give --master or --remote, not both")
    if master and not MASTERS.fullmatch(master):
        raise CovaryError(
            f"there is no Spark master {_show(master)!r}; give local[*], spark://HOST:PORT or yarn"
        )
    if remote and not REMOTES.fullmatch(remote):
        raise CovaryError(f"there is no Spark Connect server {_show(remote)!r}; give sc://HOST:PORT")
    url = master or remote or ""
    if urlsplit(url).scheme in PORTS:
        _knock(url)


def _show(address: str) -> str:
    return shown_url(address) if "://" in address else without_secrets(address.rpartition("@")[2])


def _knock(url: str) -> None:
    """Connect to any of the servers that a URL names, or tell why the last one refused."""
    parts = urlsplit(url)
    problem: Exception | None = None
    for address in parts.netloc.split(","):
        try:
            server = urlsplit(f"//{address}")
            port = server.port or PORTS[parts.scheme]
            socket.create_connection((server.hostname, port), SECONDS_TO_CONNECT).close()
            return
        except (OSError, ValueError) as refused:
            problem = refused
    reason = Secrets.of(url).hide(str(getattr(problem, "strerror", None) or problem))
    raise CovaryError(f"can't reach Spark at {_show(url)}: {reason}; is it running there?")


@contextmanager
def name_spark_errors(url: str) -> Iterator[None]:
    """Tell in one line what Spark tells in a hundred; an error in our own code on its workers stays a bug."""
    secrets = Secrets.of(url)
    try:
        with _name_spark_errors(url, secrets):
            yield
    except CovaryError as problem:
        if secrets:
            problem.forget_causes()
        raise


@contextmanager
def _name_spark_errors(url: str, secrets: Secrets) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # the error says it
            yield
    except Exception as problem:
        if _was_interrupted(problem):
            raise KeyboardInterrupt from None
        if not _is_of_spark(problem):
            raise
        # What drives Spark from here is gone: killed, or out of memory.
        message = _read_message(problem)
        is_gone = isinstance(problem, ConnectionError) or type(problem).__name__ == "Py4JNetworkError"
        if is_gone or message is None or STOPPED_CONTEXT in message[:LONGEST_READ]:
            raise TaskFailed(f"Spark at {_show(url)} failed: it does not answer any more") from problem
        if lacking := _what_workers_lack(message):
            raise TaskFailed(secrets.hide(lacking)) from problem
        if type(problem).__name__ == "PythonException":
            if ours := OUR_ERROR.search(message[-LONGEST_READ:]):
                raise TaskFailed(secrets.hide(ours[1])) from problem
            raise
        raise TaskFailed(f"Spark at {_show(url)} failed: {_reason(problem, secrets)}") from problem


def _read_message(problem: Exception) -> str | None:
    """Read what an error says; None if only a JVM knows it that is gone: py4j asks it then."""
    try:
        return str(problem)
    except Exception:
        return None


def _is_of_spark(problem: Exception) -> bool:
    """Whether Spark, or what connects us to it, raised an error; a connection may be another's."""
    raised_in = [type(problem).__module__]
    if isinstance(problem, ConnectionError):
        raised_in = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(problem.__traceback__)]
    return any(module.partition(".")[0] in MODULES for module in raised_in)


def _was_interrupted(problem: BaseException | None) -> bool:
    """Whether Ctrl-C came first: stopping a Spark that was interrupted may fail in turn."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__context__
    return problem is not None


def _what_workers_lack(message: str) -> str | None:
    matches = ((pattern.search(message[:LONGEST_READ]), sentence) for pattern, sentence in WORKERS_LACK)
    return next((sentence.format(*match.groups()) for match, sentence in matches if match), None)


def _details_of_loss(message: str) -> str:
    """What gRPC says of a connection that broke; "" if that's not what happened."""
    details = message.partition(LOST_CONNECTION)[2].partition(DETAILS)[2]
    end = END_OF_DETAILS.search(details)
    return details[: end.start()] if end else ""


def _reason(problem: Exception, secrets: Secrets) -> str:
    if lost := _details_of_loss(secrets.hide(str(problem))):
        return f"it does not answer any more ({lost.rpartition(': ')[2][:LONGEST_REASON]})"
    java = getattr(problem, "java_exception", None)
    lines = secrets.hide(str(java.toString() if java is not None else problem)).strip().splitlines()
    reason = lines[0] if lines else type(problem).__name__
    return reason.removeprefix("org.apache.spark.").removeprefix("SparkException: ")[:LONGEST_REASON]
