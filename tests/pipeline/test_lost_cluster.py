import time

import pytest

from covary.errors import CovaryError
from covary.pipeline.lost_cluster import SECONDS_WITHOUT_PROGRESS, give_up_on_lost_cluster
from covary.progress import Progress

NOBODY = "spark://127.0.0.1:1"


def wait_for_the_end():
    for _ in range(200):
        time.sleep(0.05)


def test_a_build_ends_when_the_cluster_is_lost_and_nothing_is_done():
    now, seen = [0.0], []
    with (
        pytest.raises(CovaryError, match=r"127\.0\.0\.1:1 failed: it does not answer any more"),
        give_up_on_lost_cluster(NOBODY, seen.append, lambda: now[0]) as watch,
    ):
        watch(Progress(1, 3, ()))
        now[0] += SECONDS_WITHOUT_PROGRESS + 1
        watch(Progress(1, 3, ()))
        wait_for_the_end()
    assert len(seen) == 2


@pytest.mark.parametrize("master", [None, "local[*]", "yarn"])
def test_only_a_standalone_master_is_watched(master):
    with give_up_on_lost_cluster(master, print) as watch:
        assert watch is print


def test_a_build_goes_on_without_its_master_while_tables_are_done():
    now = [0.0]
    with give_up_on_lost_cluster(NOBODY, lambda _: None, lambda: now[0]) as watch:
        for done in range(5):
            now[0] += SECONDS_WITHOUT_PROGRESS * 0.9
            watch(Progress(done, 5, ()))
            watch(Progress(done, 5, ()))


def test_an_interruption_by_the_user_stays_one():
    with pytest.raises(KeyboardInterrupt), give_up_on_lost_cluster(NOBODY, lambda _: None):
        raise KeyboardInterrupt
