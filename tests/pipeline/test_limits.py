from dataclasses import replace

import pytest

from covary.errors import CovaryError
from covary.pipeline.limits import (
    DEFAULT_LIMITS,
    ExceededLimit,
    Limits,
    bytes_of,
    is_of_the_table,
    parse_limits,
    why_give_up,
)
from covary.pipeline.reading_process import DIED, TOO_LARGE, TOO_LONG, Ended
from covary.tables.location import Location
from covary.tables.source import TableSource

FILE = TableSource("t", Location("/data/t.csv"), "csv", None, None, 1000, "1000 17")
LONG, LARGE, KILLED, CRASHED = (
    Ended("t", TOO_LONG, 2),
    Ended("t", TOO_LARGE, 8e8),
    Ended("t", DIED, 9),
    Ended("t", DIED, 11),
)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("1.5GB", 1_500_000_000),
        ("800MB", 800_000_000),
        ("800 mb", 800_000_000),
        ("2g", 2_000_000_000),
        ("1GiB", 1 << 30),
        ("500000kB", 500_000_000),
        ("1500000000", 1_500_000_000),
        (1_500_000_000, 1_500_000_000),
    ],
)
def test_a_size_is_read_as_it_is_written(written, size):
    assert bytes_of(written) == size


@pytest.mark.parametrize("written", ["", "much", "-1GB", "1.5.2GB", "GB", "1 i", "1e9", "nan"])
def test_what_is_no_size_is_refused_with_an_example(written):
    with pytest.raises(CovaryError, match=r"--memory must be a size such as 1.5GB or 800MB, not "):
        bytes_of(written)


def test_a_size_that_no_worker_could_live_with_is_refused():
    with pytest.raises(CovaryError, match="at least 300MB"):
        bytes_of("10MB")


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_time_that_is_none_is_refused(seconds):
    with pytest.raises(CovaryError, match="--table-timeout must be more than 0"):
        parse_limits(seconds, None)


def test_time_grows_with_the_size_of_a_table_unless_it_is_given():
    large = replace(FILE, size=1 << 30)
    assert DEFAULT_LIMITS.seconds_for(FILE) >= 600
    assert DEFAULT_LIMITS.seconds_for(large) > 60 * 60
    assert DEFAULT_LIMITS.seconds_for(large, parts=32) < DEFAULT_LIMITS.seconds_for(large)
    assert DEFAULT_LIMITS.seconds_for(replace(FILE, format="sqlite", size=0)) >= 1800
    assert Limits(2).seconds_for(large) == 2


def test_memory_grows_with_what_is_read_as_a_whole_unless_it_is_given():
    packed = replace(FILE, format="parquet", size=1 << 30)
    assert DEFAULT_LIMITS.memory_for(replace(FILE, format="spark", size=0)) == 1_500_000_000
    assert DEFAULT_LIMITS.memory_for(replace(FILE, size=1 << 40)) == 1_500_000_000
    assert DEFAULT_LIMITS.memory_for(replace(packed, size=1 << 20)) == 1_500_000_000
    assert DEFAULT_LIMITS.memory_for(packed) == 5_700_000_000
    assert DEFAULT_LIMITS.memory_for(packed, parts=64) < 1_600_000_000
    assert Limits(memory=800_000_000).memory_for(packed) == 800_000_000


def test_a_table_that_takes_too_long_is_not_tried_again():
    assert why_give_up([LONG]) == "it took longer than 2 s; --table-timeout sets another limit"
    assert why_give_up([KILLED, LONG]) == why_give_up([LONG])


def test_a_table_at_which_a_process_died_is_tried_once_more():
    for once in (LARGE, KILLED, CRASHED):
        assert why_give_up([once]) is None
    assert why_give_up([]) is None
    assert why_give_up([KILLED, LARGE]) == "it needs more than 0.8 GB of memory; --memory sets another limit"
    assert why_give_up([LARGE, CRASHED]) == "the process that read it died twice (signal 11)"
    assert "killed twice" in why_give_up([KILLED, KILLED])
    assert why_give_up([Ended("t", DIED)] * 2) == "the process that read it died twice"


def test_a_table_beyond_a_limit_is_tried_again_when_the_limit_is_raised():
    too_long, too_large = why_give_up([LONG]), why_give_up([LARGE, LARGE])
    assert ExceededLimit.from_text(too_long) == ExceededLimit(TOO_LONG, 2)
    assert ExceededLimit.from_text(too_large) == ExceededLimit(TOO_LARGE, 0.8)
    assert ExceededLimit.from_text(too_long.replace("2", "e")) is None
    assert not Limits(2).allow_more(too_long)
    assert not Limits(1).allow_more(too_long)
    assert Limits(3).allow_more(too_long)
    assert DEFAULT_LIMITS.allow_more(too_long)
    assert not Limits(memory=800_000_000).allow_more(too_large)
    assert DEFAULT_LIMITS.allow_more(too_large)
    by_default = Ended("t", TOO_LONG, DEFAULT_LIMITS.seconds_for(replace(FILE, size=1 << 40)))
    for again in (by_default, Ended("t", TOO_LONG, DEFAULT_LIMITS.seconds_for(FILE))):
        assert not DEFAULT_LIMITS.allow_more(why_give_up([again]))
    assert not Limits(1e9).allow_more("the file is empty")
    assert not Limits(1e9).allow_more("the process that read it died twice (signal 11)")


def test_only_a_table_that_lies_here_and_kills_nobody_stays_beyond_its_limits():
    assert is_of_the_table([LONG], FILE)
    assert is_of_the_table([LARGE, LARGE], FILE)
    assert not is_of_the_table([LARGE, KILLED], FILE)
    assert not is_of_the_table([LONG], replace(FILE, location=Location("https://x.org/t.csv")))
    assert not is_of_the_table([LONG], replace(FILE, version=""))
