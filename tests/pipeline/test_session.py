import sys

import pytest

from covary.pipeline.session import (
    is_local_master,
    python_of_workers,
    session_settings,
    with_retries,
)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    for name in ("PYSPARK_PYTHON", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("master", "local", "host"),
    [
        ("local[*]", True, "localhost"),
        ("local", True, "localhost"),
        ("local-cluster[2,1,1024]", False, None),
        ("spark://127.0.0.1:7077", False, "localhost"),
        ("spark://localhost:7077", False, "localhost"),
        ("spark://elsewhere:7077", False, None),
        ("yarn", False, None),
    ],
)
def test_workers_elsewhere_are_not_sent_to_their_own_localhost(master, local, host):
    assert is_local_master(master) == local
    assert session_settings(master).get("spark.driver.host") == host


@pytest.mark.parametrize(
    ("master", "started"),
    [
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local", "local[1,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://localhost:7077", "spark://localhost:7077"),
    ],
)
def test_a_local_master_tries_again_unless_it_says_how_often(master, started):
    assert with_retries(master) == started


def test_workers_run_this_python_unless_told_otherwise():
    assert python_of_workers() == sys.executable


@pytest.mark.parametrize("line", ["spark.pyspark.python /opt/py", "  spark.pyspark.python = /opt/py"])
def test_the_python_of_spark_defaults_counts_unless_the_environment_names_another(
    line, monkeypatch, tmp_path
):
    (tmp_path / "spark-defaults.conf").write_text(f"# spark.pyspark.python /no\nspark.a b\n{line}\n")
    assert python_of_workers() == "/opt/py"
    monkeypatch.setenv("PYSPARK_PYTHON", "python3.11")
    assert python_of_workers() == "python3.11"
