import polars as pl
import pytest

from covary import join, sketch
from covary.errors import IncompatibleSketches


def sketch_of(numbers, size=1024, **settings):
    frame = pl.DataFrame({"k": [f"k{n}" for n in numbers], "v": [float(n) for n in numbers]})
    return sketch(frame, "k", "v", size=size, **settings)


def test_complete_sketches_give_the_join_exactly():
    sample = join(sketch_of(range(100)), sketch_of(range(60, 160)))
    assert sorted(sample.x.tolist()) == sorted(sample.y.tolist()) == [float(n) for n in range(60, 100)]
    assert sample.exact
    assert (sample.keys.join_size.value, sample.keys.left_containment.value) == (40, 0.4)


def test_pairs_stand_in_sampling_order():
    left = sketch_of(range(50))
    sample = join(left, sketch_of(range(20, 90)))
    wanted = set(sample.key_hashes.tolist())
    assert sample.key_hashes.tolist() == [each for each in left.key_hashes.tolist() if each in wanted]


def test_columns_without_a_shared_key_join_to_nothing():
    sample = join(sketch_of(range(10)), sketch_of(range(10, 20)))
    assert (sample.size, sample.keys.join_size.value, sample.keys.left_containment.value) == (0, 0, 0)
    cut = join(sketch_of(range(500), 16), sketch_of(range(500, 1000), 16))
    assert cut.keys.join_size.value == 0
    assert not cut.exact


def test_sketches_of_different_sizes_join():
    sample = join(sketch_of(range(500), 64), sketch_of(range(500), 16))
    assert sample.size == 16
    assert not sample.exact


def test_an_estimate_stays_between_the_sample_and_the_smaller_column():
    for start in range(0, 60, 7):
        sample = join(sketch_of(range(60), 64), sketch_of(range(start, 900), 64))
        assert sample.size <= sample.keys.join_size.value <= 60
        assert 0 <= sample.keys.left_containment.value <= 1


def test_sketches_of_different_hashes_are_refused():
    with pytest.raises(IncompatibleSketches, match=r"'murmur3'.*--hash"):
        join(sketch_of(range(5)), sketch_of(range(5), hash="murmur3"))
