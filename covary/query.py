"""The top-k join-correlation query (paper, section 4): the method on one screen."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from covary.aggregate import Floats
from covary.estimates import HowToMeasure, estimate_sample
from covary.frames import Frame, open_table, sketch_table
from covary.hits import Hit, Hits, QueryNote
from covary.index import Candidates, StoredSketches
from covary.intervals import CONFIDENCE
from covary.joins import join
from covary.keysets import check_comparable, distinct_keys
from covary.listing import OnProgress, best_first, candidate_list
from covary.measures import DEFAULT_MEASURE
from covary.ranking import BASELINES, DEFAULT_RANKER, ranker_named
from covary.settings import DEFAULT_CORRECTION, DEFAULT_MIN_SAMPLE, DEFAULT_SHORTLIST, DEFAULT_TOP, Settings
from covary.significance import CORRECTIONS, p_values, quick_p_values
from covary.sketches import Sketch, SketchConfig

Numbers = npt.NDArray[np.int64]

WORTH_A_CLOSER_LOOK = 0.2  # p-values by Student's t above this need no moments: nothing there survives


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Every column that joins, those that were tested, and the best in order, by number and as hits."""

    own: int
    joinable: int
    looked_at: int  # of those that join: all, or the ones to retrieve
    tested: Candidates
    measured: Candidates | None  # by a dearer measure
    q_values: dict[str, Floats]
    best: Numbers
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
        correction: str = DEFAULT_CORRECTION,
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
            retrieve: look only at this many columns, those sharing the most sampled keys (paper: 100).
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
        found = self.answer(query, settings, left_out, on_progress)
        by_chance = None
        if null:
            shuffled = replace(query, values=np.random.default_rng(seed).permutation(query.values))
            rank_by_chance = DEFAULT_RANKER if rank in BASELINES else rank
            unfiltered = replace(settings, max_q=None, rank=rank_by_chance)
            by_chance = self.answer(shuffled, unfiltered, left_out, on_progress).hits
        return _hits(query, settings, found, by_chance, started)

    def answer(
        self,
        query: Sketch,
        settings: Settings,
        left_out: Numbers | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Score what joins, rank the whole list, measure the best, and test for chance (section 4.4)."""
        on_progress = on_progress or _silent
        how, rank = settings.how, ranker_named(settings.rank)
        scored = self.score(query, how.definition.scores_by)
        joinable = scored if left_out is None else scored.only(~np.isin(scored.sketches, left_out))
        own = int(scored.sketches.size - joinable.sketches.size)
        looked_at = _largest_overlap(joinable, settings.retrieve)
        tested = looked_at.only(looked_at.sample_sizes >= settings.fewest_pairs)
        scores = rank(candidate_list(self, query, tested, how.seed, on_progress))
        chance = quick_p_values(tested.correlations, tested.sample_sizes)
        closer = chance < max(WORTH_A_CLOSER_LOOK, settings.max_q or 0.0)
        if not how.definition.p_value:
            self._test_closer(query, tested, how, chance, closer)
        listed, places, measured = tested, np.arange(tested.sketches.size), None
        if how.dearer:
            places, _ = best_first(tested, scores, settings.shortlist)
            listed, own_test = self._measure_again(query, tested.only(places), how, on_progress)
            scores, measured = rank(candidate_list(self, query, listed, how.seed, on_progress)), listed
            if how.definition.p_value:
                chance = np.where(np.isnan(chance), np.nan, 1.0)  # what was not measured counts as chance
                chance[places] = own_test
        order, best = best_first(listed, settings.allowed(scores, chance, places), settings.top)
        places = places[order]
        if not how.definition.p_value:
            # A weak hit has not been looked at closely yet, and is shown all the same.
            self._test_closer(query, tested, how, chance, np.isin(np.arange(chance.size), places) & ~closer)
        q_values = {name: correct(chance) for name, correct in CORRECTIONS.items()}
        hits = tuple(
            self._hit(query, int(tested.sketches[place]), how, score, [q[place] for q in q_values.values()])
            for place, score in zip(places, best, strict=True)
        )
        return Answer(
            own,
            joinable.sketches.size,
            looked_at.sketches.size,
            tested,
            measured,
            q_values,
            tested.sketches[places],
            hits,
        )

    def _test_closer(
        self, query: Sketch, tested: Candidates, how: HowToMeasure, p: Floats, closer: npt.NDArray[np.bool_]
    ) -> None:
        """Put p-values from the moments of the samples in place of the quick ones."""
        p[closer] = p_values(self.moments(query, how.definition.scores_by, tested.sketches[closer]))

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
            chance[place] = how.p_value_of(sample) if how.definition.p_value else np.nan
        return replace(
            shortlist, correlations=np.maximum(values, 0) if how.definition.from_zero else values
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


def _hits(
    query: Sketch, settings: Settings, found: Answer, by_chance: tuple[Hit, ...] | None, started: float
) -> Hits:
    """Tell a person what was found, what was asked, and what was left out."""
    how, constant = settings.how, _count_undefined(found.tested)
    return Hits(
        query=QueryNote.of(query),
        candidates=found.joinable,
        hidden=found.looked_at - int(found.tested.sketches.size),
        own=found.own,
        constant=constant,
        tested=int(found.tested.sketches.size) - constant,
        survivors=int(np.count_nonzero(found.q_values[settings.correction] <= settings.level)),
        level=settings.level,
        correction=settings.correction,
        max_q=None if settings.max_q is None else float(settings.max_q),
        retrieve=settings.retrieve,
        shortlist=int(found.measured.sketches.size) if found.measured else None,
        undefined=_count_undefined(found.measured) if found.measured else 0,
        scored_by=how.definition.scores_by,
        tested_by=how.tested_by,
        hits=found.hits,
        by_chance=by_chance,
        measure=how.measure,
        interval=how.interval_name,
        confidence=how.confidence,
        rank=settings.rank,
        min_sample=settings.fewest_pairs,
        seed=how.seed,
        elapsed_ms=(time.perf_counter() - started) * 1e3,
    )


def open_index(path: str | Path) -> Index:
    """Open an index, checking every file against its checksum. Needs neither Spark nor Java."""
    return Index.open(path)


def _largest_overlap(candidates: Candidates, count: int | None) -> Candidates:
    if count is None:
        return candidates
    order = np.lexsort((candidates.sketches, -candidates.sample_sizes))
    return candidates.only(order[:count])


def _count_undefined(candidates: Candidates) -> int:
    return int(np.count_nonzero(np.isnan(candidates.correlations)))


def _silent(done: int, total: int) -> None:
    """Show nothing."""
