import numpy as np
import polars as pl
import pytest
import xxhash

from covary.sketching.hashing import SCHEMES, sort_by_order

TEXTS = ["a", "2021-01", "Curaçao", "🙂", "x" * 100]


def test_xxhash64_is_the_standard_one_with_sparks_seed():
    expected = [xxhash.xxh64_intdigest(text.encode(), seed=42) for text in TEXTS]
    assert SCHEMES["xxhash64"].identify([pl.Series(TEXTS)])[0].hashes.tolist() == expected


def test_murmur3_is_standard_outside_the_basic_plane():
    # MurmurHash3 x86 32-bit, seed 0, of the four UTF-8 bytes f0 9f 99 82.
    k = (int.from_bytes("🙂".encode(), "little") * 0xCC9E2D51) & 0xFFFFFFFF
    k = (((k << 15) | (k >> 17)) & 0xFFFFFFFF) * 0x1B873593 & 0xFFFFFFFF
    h = (((k << 13) | (k >> 19)) & 0xFFFFFFFF) * 5 + 0xE6546B64 & 0xFFFFFFFF
    h ^= 4
    h = (h ^ (h >> 16)) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    assert int(SCHEMES["murmur3"].identify([pl.Series(["🙂"])])[0].hashes[0]) & 0xFFFFFFFF == h


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_null_and_empty_keys_are_left_out(name):
    scheme = SCHEMES[name]
    hashed = scheme.identify([pl.Series([None, "a", "", "b", None], dtype=pl.String)])[0]
    assert hashed.present.tolist() == [False, True, False, True, False]
    expected = scheme.identify([pl.Series(["a", "b"])])[0].hashes
    assert hashed.hashes[hashed.present].tolist() == expected.tolist()


@pytest.mark.parametrize("name", sorted(SCHEMES))
@pytest.mark.parametrize("texts", [[], [None, None], [""]])
def test_a_column_without_keys_has_no_hashes(name, texts):
    hashed = SCHEMES[name].identify([pl.Series(texts, dtype=pl.String)])[0]
    hashes = hashed.hashes
    assert hashed.present is None if not texts else not hashed.present.any()
    assert hashes.dtype == SCHEMES[name].identity_type


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_units_lie_between_0_and_1_in_the_order_of_sampling(name):
    scheme = SCHEMES[name]
    hashes = scheme.identify([pl.Series([str(number) for number in range(2000)])])[0].hashes
    units = scheme.unit(hashes)[sort_by_order(hashes, scheme.order(hashes))]
    assert np.all(np.diff(units) >= 0)
    assert 0 <= units[0] <= units[-1] < 1


def test_the_largest_order_has_a_unit_below_1():
    assert SCHEMES["xxhash64"].order_to_unit(np.array([2**64 - 1], dtype=np.uint64))[0] < 1


def test_equal_units_are_ordered_by_hash():
    scheme = SCHEMES["murmur3"]
    # h_u has about 21 usable bits, so that among so many keys some are equal.
    hashes = np.random.default_rng(1).integers(-(2**31), 2**31, 100_000).astype(np.int32)
    ordered = hashes[sort_by_order(hashes, scheme.order(hashes))]
    tied = np.flatnonzero(np.diff(scheme.unit(ordered)) == 0)
    assert tied.size
    assert np.all(ordered[tied] <= ordered[tied + 1])
