"""The top-k join-correlation query (paper, section 4): the method on one screen."""

import time
from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.correlation import SMALLEST_SAMPLE
from covary.errors import CovaryError
from covary.estimates import HowToMeasure, estimate_sample
from covary.frames import Frame, open_table, sketch_table
from covary.hits import Hit, Hits, QueryNote
from covary.index import Candidates, StoredSketches
from covary.intervals import CONFIDENCE
from covary.joins import join
from covary.keysets import check_comparable, distinct_keys
from covary.listing import OnProgress, best_first, candidate_list
from covary.measures import DEFAULT_MEASURE
from covary.ranking import BASELINES, DEFAULT_RANKER, OF_PEARSON, ranker_named
from covary.significance import CORRECTIONS, correction_named, p_values, quick_p_values
from covary.sketches import Sketch, SketchConfig

Numbers = npt.NDArray[np.int64]

DEFAULT_TOP = 10
DEFAULT_MIN_SAMPLE = 10  # on fewer keys, columns that have nothing to do with each other often look alike
DEFAULT_LEVEL = 0.05  # share of chance among the columns that are said to survive
DEFAULT_SHORTLIST = 200
WORTH_A_CLOSER_LOOK = 0.2  # p-values by Student's t above this need no moments: nothing there survives


@dataclass(frozen=True, slots=True)
class Settings:
    """How a question is to be answered; see Index.query."""

    how: HowToMeasure
    rank: str
    top: int
    min_sample: int
    retrieve: int | None
    shortlist: int
    max_q: float | None
    correction: str

    def __post_init__(self) -> None:
        ranker_named(self.rank)
        correction_named(self.correction)
        _require_at_least(1, self.top, "the number of hits (--top)")
        _require_at_least(0, self.min_sample, "the smallest sample (--min-sample)")
        _require_at_least(1, self.shortlist, "the length of the shortlist (--shortlist)")
        if self.retrieve is not None:
            _require_at_least(1, self.retrieve, "the number of columns to rank (--retrieve)")
        if self.max_q is not None and not (isinstance(self.max_q, Real) and 0 < self.max_q <= 1):
            raise CovaryError(f"the largest q (--max-q) must be above 0 and at most 1, not {self.max_q!r}")
        if self.rank in OF_PEARSON and self.how.known.scores_by != "pearson":
            raise CovaryError(f"{self.rank} ranks by Pearson's r: use --measure pearson, or another --rank")

    @property
    def fewest_pairs(self) -> int:
        """The fewest pairs that a hit may rest on."""
        return max(self.min_sample, SMALLEST_SAMPLE)

    def allowed(self, scores: Floats, chance: Floats, places: Numbers) -> Floats:
        """Take the scores off those whose q-value is too large."""
        if self.max_q is None:
            return scores
        return np.where(correction_named(self.correction)(chance)[places] <= self.max_q, scores, np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Every column that joins, those of them that were tested, and the best in order."""

    own: int
    joinable: Candidates
    tested: Candidates
    measured: Candidates | None  # by a dearer measure
    q_values: dict[str, Floats]
    hits: tuple[Hit, ...]


class Index(StoredSketches):
    """An index opened for questions."""

    def query(
        self,
        frame: Frame,
        key: str,
        value: str,
        *,
        aggregate: str = "mean",
        top: int = DEFAULT_TOP,
        measure: str = DEFAULT_MEASURE,
        rank: str = DEFAULT_RANKER,
        interval: str | None = None,
        confidence: float = CONFIDENCE,
        max_q: float | None = None,
        correction: str = "bh",
        null: bool = False,
        min_sample: int = DEFAULT_MIN_SAMPLE,
        retrieve: int | None = None,
        shortlist: int = DEFAULT_SHORTLIST,
        include_own: bool = False,
        seed: int = 0,
        on_progress: OnProgress | None = None,
    ) -> Hits:
        """Find the columns that join with a table on `key` and move with its column `value`.

        Args:
            frame: a Polars, pandas or Arrow table, or the path of a file.
            key: the column to join on.
            value: the column of numbers.
            aggregate: how rows of one key of the query become one number.
            top: how many hits to return.
            measure: "pearson", "spearman", "rin", "qn", "pm1", "kendall", "distance" or "chatterjee".
            rank: "finite-population", the paper's "s1" to "s4", or the baselines "jc" and "random".
            interval: "influence", "fisher", "pm1", "hoeffding", "hoeffding-small"; None: the measure's own.
            confidence: how often an interval is to hold the join's own correlation.
            max_q: return only hits with at most this q-value, the share of chance among them.
            correction: which q-value that is: "bh" (Benjamini-Hochberg) or "by" (Benjamini-Yekutieli).
            null: also ask with the numbers shuffled over the keys, for hits that are chance.
            min_sample: the fewest shared keys that a hit may rest on.
            retrieve: rank only this many columns, those with the largest overlap; the paper takes 100.
            shortlist: how many columns a dearer measure than pearson, spearman and rin measures.
            include_own: also return columns of the queried file, if the index holds it.
            seed: of shuffling, resampling and random ranking.
            on_progress: called with how many columns are done, of how many, while that takes long.
        """
        started = time.perf_counter()
        how = HowToMeasure(measure, interval, confidence, seed)
        settings = Settings(how, rank, top, min_sample, retrieve, shortlist, max_q, correction)
        config = SketchConfig(self.config.size, (aggregate,), self.config.hash)
        check_comparable(self.config, config)
        table = open_table(frame, [key, value])
        query = sketch_table(table, key, value, config)
        left_out = np.empty(0, dtype=np.int64) if include_own else self.made_from(table.path)
        on_progress = on_progress or _silent
        found = self._rank(query, left_out, settings, on_progress)
        chance = None
        if null:
            shuffled = replace(query, values=np.random.default_rng(seed).permutation(query.values))
            rank_by_chance = DEFAULT_RANKER if rank in BASELINES else rank
            unfiltered = replace(settings, max_q=None, rank=rank_by_chance)
            chance = self._rank(shuffled, left_out, unfiltered, on_progress)
        level = DEFAULT_LEVEL if max_q is None else float(max_q)
        constant = _count_undefined(found.tested)
        return Hits(
            query=QueryNote.of(query),
            candidates=int(found.joinable.sketches.size),
            hidden=int(found.joinable.sketches.size - found.tested.sketches.size),
            own=found.own,
            constant=constant,
            tested=int(found.tested.sketches.size) - constant,
            survivors=int(np.count_nonzero(found.q_values[correction] <= level)),
            level=level,
            correction=correction,
            max_q=None if max_q is None else float(max_q),
            retrieve=retrieve,
            shortlist=int(found.measured.sketches.size) if found.measured else None,
            undefined=_count_undefined(found.measured) if found.measured else 0,
            scored_by=how.known.scores_by,
            tested_by=how.tested_by,
            hits=found.hits,
            by_chance=chance.hits if chance else None,
            measure=measure,
            interval=how.interval_name,
            confidence=how.confidence,
            rank=rank,
            min_sample=settings.fewest_pairs,
            seed=seed,
            elapsed_ms=(time.perf_counter() - started) * 1e3,
        )

    def _rank(self, query: Sketch, left_out: Numbers, settings: Settings, on_progress: OnProgress) -> Ranked:
        """Score what joins, rank the whole list, measure the best, and test for chance (section 4.4)."""
        how, rank = settings.how, ranker_named(settings.rank)
        scored = self.score(query, how.known.scores_by)
        joinable = scored.only(~np.isin(scored.sketches, left_out))
        own = int(scored.sketches.size - joinable.sketches.size)
        if settings.retrieve is not None:
            joinable = _largest_overlap(joinable, settings.retrieve)
        tested = joinable.only(joinable.sample_sizes >= settings.fewest_pairs)
        scores = rank(candidate_list(self, query, tested, how.seed, on_progress))
        chance = quick_p_values(tested.correlations, tested.sample_sizes)
        closer = chance < max(WORTH_A_CLOSER_LOOK, settings.max_q or 0.0)
        self._test_closer(query, tested, how, chance, closer)
        listed, places, measured = tested, np.arange(tested.sketches.size), None
        if how.dearer:
            places, _ = best_first(tested, scores, settings.shortlist)
            listed, own_test = self._measure_again(query, tested.only(places), how, on_progress)
            scores, measured = rank(candidate_list(self, query, listed, how.seed, on_progress)), listed
            if how.known.p_value:
                chance = np.where(np.isnan(chance), np.nan, 1.0)  # what was not measured counts as chance
                chance[places] = own_test
        order, best = best_first(listed, settings.allowed(scores, chance, places), settings.top)
        places = places[order]
        if not how.known.p_value:
            # A weak hit has not been looked at closely yet, and is shown all the same.
            self._test_closer(query, tested, how, chance, np.isin(np.arange(chance.size), places) & ~closer)
        q_values = {name: correct(chance) for name, correct in CORRECTIONS.items()}
        hits = tuple(
            self._hit(query, int(tested.sketches[place]), how, score, [q[place] for q in q_values.values()])
            for place, score in zip(places, best, strict=True)
        )
        return Ranked(own, joinable, tested, measured, q_values, hits)

    def _test_closer(
        self, query: Sketch, tested: Candidates, how: HowToMeasure, p: Floats, closer: npt.NDArray[np.bool_]
    ) -> None:
        """Put p-values from the moments of the samples in place of the quick ones."""
        p[closer] = p_values(self.moments(query, how.known.scores_by, tested.sketches[closer]))

    def _measure_again(
        self, query: Sketch, shortlist: Candidates, how: HowToMeasure, on_progress: OnProgress
    ) -> tuple[Candidates, Floats]:
        """Measure a shortlist by the dearer measure that was asked for; return its p-values, too."""
        total = int(shortlist.sketches.size)
        values, chance = np.empty(total), np.empty(total)
        for place, number in enumerate(shortlist.sketches):
            on_progress(place, total)
            sample = join(query, self.sketch_at(int(number)))
            values[place] = how.value_of(sample)
            chance[place] = how.p_value_of(sample) if how.known.p_value else np.nan
        return replace(
            shortlist, correlations=np.maximum(values, 0) if how.known.from_zero else values
        ), chance

    def _hit(self, query: Sketch, number: int, how: HowToMeasure, score: float, q_values: list[float]) -> Hit:
        found = self.sketch_at(number)
        counts = found.counts
        return Hit(
            **asdict(estimate_sample(join(query, found), how)),
            **asdict(found.pair),
            aggregate=found.aggregate,
            score=float(score),
            q_value=float(q_values[0]),
            q_value_by=float(q_values[1]),
            rows=counts.rows,
            distinct_keys=distinct_keys(found).value,
            dropped_rows=counts.rows - counts.kept_rows,
        )


def open_index(path: str | Path) -> Index:
    """Open an index, checking every file against its checksum. Needs neither Spark nor Java."""
    return Index.open(path)


def _require_at_least(least: int, number: object, what: str) -> None:
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise CovaryError(f"{what} must be a whole number of at least {least}, not {number!r}")


def _largest_overlap(candidates: Candidates, count: int) -> Candidates:
    order = np.lexsort((candidates.sketches, -candidates.sample_sizes))
    return candidates.only(order[:count])


def _count_undefined(candidates: Candidates) -> int:
    return int(np.count_nonzero(np.isnan(candidates.correlations)))


def _silent(done: int, total: int) -> None:
    """Show nothing."""
