import socket

import pytest

from covary.errors import CovaryError
from covary.pipeline.reading_process import DIED, Ended, EndedEarly
from covary.pipeline.spark_errors import name_spark_errors

TRACEBACK = (
    "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File ...\n"
)


class JavaError(Exception):
    """As Spark raises what its JVM said."""

    __module__ = "pyspark.errors.exceptions.captured"


class PythonException(Exception):
    __module__ = "pyspark.errors.exceptions.captured"


class SparkConnectGrpcException(Exception):
    __module__ = "pyspark.errors.exceptions.connect"


def message_of(problem):
    with pytest.raises(CovaryError) as caught, name_spark_errors("spark://host:7077"):
        raise problem
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_package_that_workers_lack_is_named():
    line = message_of(PythonException(f"{TRACEBACK}ModuleNotFoundError: No module named 'scipy.stats'"))
    assert line == (
        "Spark's workers have no Python package scipy: for their Python, run pip install 'covary[spark]', "
        "or name one that has it in PYSPARK_PYTHON"
    )


def test_workers_of_another_python_are_told_with_both_versions():
    line = message_of(
        PythonException(
            f"{TRACEBACK}pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] "
            "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with "
            "different minor versions.\nPlease check environment variables."
        )
    )
    assert line.startswith(
        "Spark's workers run Python 3.12 and this is Python 3.11, which must be the same: "
    )


def test_a_python_that_workers_do_not_have_is_named():
    lost = (
        'Lost task 0.3 in stage 0.0: java.io.IOException: Cannot run program "/opt/py": error=2, No such file'
    )
    line = message_of(SparkConnectGrpcException(f"Job aborted.\n{lost} or directory"))
    assert line == "Spark's workers have no Python at /opt/py: name theirs in PYSPARK_PYTHON"


def test_processes_that_do_not_live_on_workers_are_told():
    line = message_of(
        PythonException(
            f"{TRACEBACK}covary.pipeline.reading_process.EndedEarly: {EndedEarly(Ended('', DIED, 9))}"
        )
    )
    assert line == (
        "on Spark's workers, the Python processes that read tables end early of signal 9, again and again; "
        "is there memory for them?"
    )


def test_a_server_that_is_gone_is_told_by_its_reason():
    line = message_of(
        SparkConnectGrpcException(
            "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
            '\tdetails = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: '
            'connect: Connection refused (111)"\n\tdebug_error_string = "UNKNOWN: ..."\n>'
        )
    )
    assert line == "Spark at spark://host:7077 failed: it does not answer any more (Connection refused (111))"


@pytest.mark.parametrize(
    "bug", ["KeyError: 'x'", "ModuleNotFoundError: No module named 'covary.pipeline.tasks'"]
)
def test_a_bug_of_ours_on_a_worker_stays_one(bug):
    with pytest.raises(PythonException), name_spark_errors("local[*]"):
        raise PythonException(TRACEBACK + bug)


def test_a_java_process_that_is_gone_is_told_in_a_line():
    refused = {"__name__": "py4j.clientserver", "create_connection": socket.create_connection}
    exec("def connect(): create_connection(('127.0.0.1', 1))", refused)
    with pytest.raises(CovaryError) as caught, name_spark_errors("local[*]"):
        refused["connect"]()
    assert str(caught.value) == "Spark at local[*] failed: it does not answer any more"
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


def test_a_connection_of_ours_that_is_refused_stays_a_bug():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = free.getsockname()
    with pytest.raises(ConnectionRefusedError), name_spark_errors("local[*]"):
        socket.create_connection(address)


def test_a_session_that_was_stopped_meanwhile_is_told_in_a_line():
    message = (
        "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\nIt was created at"
    )
    with pytest.raises(CovaryError) as caught, name_spark_errors("local[*]"):
        raise JavaError(message)
    assert str(caught.value) == "Spark at local[*] failed: it does not answer any more"


def test_an_error_whose_words_only_a_dead_jvm_knows_is_told_in_a_line():
    class Unreadable(JavaError):
        __module__ = JavaError.__module__

        def __str__(self):
            raise ConnectionRefusedError(111, "Connection refused")

    with pytest.raises(CovaryError) as caught, name_spark_errors("local[*]"):
        raise Unreadable
    assert str(caught.value) == "Spark at local[*] failed: it does not answer any more"
