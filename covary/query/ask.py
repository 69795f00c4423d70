"""The top-k join-correlation query (paper, section 4): the method on one screen."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from covary.arrays import Floats, Integers
from covary.columns.key_text import check_normaliser
from covary.query.candidates import OnProgress, best_first, candidate_list, count_undefined, show_nothing
from covary.query.explain import explanation_of
from covary.query.hits import Hit, Hits, QueryNote
from covary.query.open_segment import Candidates
from covary.query.options import (
    DEFAULT_CORRECTION,
    DEFAULT_MIN_SAMPLE,
    DEFAULT_SHORTLIST,
    DEFAULT_TOP,
    Settings,
)
from covary.query.rank_candidates import Ranked, look_closer, rank_all
from covary.query.stored_sketches import StoredSketches
from covary.sketching.key_choice import split_key
from covary.sketching.key_columns import SEPARATOR
from covary.sketching.open_table import Frame, KeyName, open_table
from covary.sketching.sketch_table import Asked, sketch_table
from covary.sketching.sketch_types import ColumnPair, Sketch, SketchConfig
from covary.statistics.estimate import Estimate, HowToMeasure, estimate_sample
from covary.statistics.intervals import CONFIDENCE
from covary.statistics.join import join
from covary.statistics.key_sets import distinct_keys
from covary.statistics.measures import DEFAULT_MEASURE
from covary.statistics.ranking import BASELINES, DEFAULT_RANKER, ranker_named
from covary.statistics.significance import CORRECTIONS


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Every column that joins, ranked, and the best in order, by number and as hits."""

    ranked: Ranked
    measured: Candidates | None  # by a dearer measure
    q_values: dict[str, Floats]
    best: Integers
    hits: tuple[Hit, ...]


class Index(StoredSketches):
    """An index opened for questions."""

    def query(
        self,
        frame: Frame,
        key: KeyName,
        value: str,
        *,
        by: str | None = None,
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
        small_numbers: bool = False,
        explain: bool = False,
        seed: int = 0,
        on_progress: OnProgress | None = None,
    ) -> Hits:
        """Find the columns that join with a table on `key` and move with its column `value`.

        Args:
            frame: a Polars, pandas or Arrow table, or the path of a file.
            key: the column to join on; or several, in any order, as "date,zip" or ["date", "zip"].
            value: the column of numbers.
            by: join times by "hour", "day", "week", "month", "quarter" or "year"; None: by the finest that
                both sides have.
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
            small_numbers: also return columns that share only numbers below 1,000, at most 60, under a name
                that has no word in common with `key`.
            explain: also say for each hit how its keys met, with examples.
            seed: of shuffling, resampling and random ranking.
            on_progress: called with how many columns are done, of how many, while that takes long.
        """
        started = time.perf_counter()
        how = HowToMeasure(measure, interval, confidence, seed)
        settings = Settings(how, rank, top, min_sample, retrieve, shortlist, max_q, correction, small_numbers)
        config = SketchConfig(self.config.size, (aggregate,), self.config.hash, self.config.normaliser)
        check_normaliser(self.config.normaliser)
        table = open_table(frame, key, value)
        asked = sketch_table(table, value, config, any_order=True)
        queries = [each.sketch for each in asked.at(by)]
        left_out = np.empty(0, dtype=np.int64) if include_own else self.made_from(table.path)
        found = self.answer(queries, settings, left_out, on_progress)
        by_chance = None
        if null:
            shuffled = [
                replace(query, values=np.random.default_rng(seed).permutation(query.values))
                for query in queries
            ]
            rank_by_chance = DEFAULT_RANKER if rank in BASELINES else rank
            unfiltered = replace(settings, max_q=None, rank=rank_by_chance)
            by_chance = self.answer(shuffled, unfiltered, left_out, on_progress).hits
        if explain:
            found = replace(found, hits=self._explained(found.hits, asked))
        return _hits(queries[0], settings, found, by_chance, asked, started)

    def answer(
        self,
        query: Sketch | Sequence[Sketch],
        settings: Settings,
        left_out: Integers | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Score what joins, rank the whole list, measure the best, and test for chance (section 4.4).

        A query may come as several sketches, of which each column joins with one: its times at several
        granularities, finest first; the columns of its key in several orders.
        """
        on_progress = on_progress or show_nothing
        queries = [query] if isinstance(query, Sketch) else list(query)
        how, rank = settings.how, ranker_named(settings.rank)
        found = rank_all(self, queries, settings, left_out, on_progress)
        tested, chance, common, scores = found.tested, found.chance, found.common, found.scores
        listed, places, measured = tested, np.arange(tested.sketches.size), None
        if how.dearer:
            places, _ = best_first(tested, scores, settings.shortlist)
            listed, own_test = self._measure_again(queries, tested.only(places), how, on_progress)
            given = candidate_list(self, queries, listed, how.seed, on_progress, common[places])
            scores, measured = rank(given), listed
            if how.definition.p_value:
                chance = np.where(np.isnan(chance), np.nan, 1.0)  # what was not measured counts as chance
                chance[places] = own_test
        order, best = best_first(listed, settings.allowed(scores, chance, places), settings.top)
        places = places[order]
        if not how.definition.p_value:
            # A weak hit has not been looked at closely yet, and is shown all the same.
            shown = np.isin(np.arange(chance.size), places)
            look_closer(self, queries, tested, how, chance, shown & ~found.closer)
        q_values = {name: correct(chance) for name, correct in CORRECTIONS.items()}
        hits = tuple(
            self.hit(
                queries[tested.asked[place]],
                int(tested.sketches[place]),
                how,
                score,
                [q[place] for q in q_values.values()],
                found.hosts if common[place] else None,
            )
            for place, score in zip(places, best, strict=True)
        )
        return Answer(found, measured, q_values, tested.sketches[places], hits)

    def _met(self, query: Sketch, found: Sketch) -> tuple[tuple[str, str], ...]:
        """Pair the columns of two keys; a name may hold a comma, so a table's columns tell them apart."""
        mine, theirs = query.pair.key, found.pair.key
        if SEPARATOR not in theirs:
            return ((mine, theirs),)
        columns = split_key(theirs, self.column_names(found.pair.table))
        own = mine.split(SEPARATOR)
        return tuple(zip(own, columns, strict=True)) if len(own) == len(columns) else ((mine, theirs),)

    def _explained(self, hits: Sequence[Hit], asked: Asked) -> tuple[Hit, ...]:
        """Say of each hit how its keys met those of the query."""
        return tuple(replace(hit, explanation=explanation_of(hit, asked, self)) for hit in hits)

    def _measure_again(
        self, queries: Sequence[Sketch], shortlist: Candidates, how: HowToMeasure, on_progress: OnProgress
    ) -> tuple[Candidates, Floats]:
        """Measure a shortlist by the dearer measure that was asked for; return its p-values, too."""
        total = int(shortlist.sketches.size)
        values, chance = np.empty(total), np.empty(total)
        for place, number in enumerate(shortlist.sketches):
            on_progress(place, total)
            sample = join(queries[shortlist.asked[place]], self.sketch_at(int(number)))
            values[place] = how.value_of(sample)
            chance[place] = how.p_value_of(sample) if how.definition.p_value else np.nan
        return replace(
            shortlist, correlations=np.maximum(values, 0) if how.definition.from_zero else values
        ), chance

    def hit(
        self,
        query: Sketch,
        number: int,
        how: HowToMeasure,
        score: float,
        q_values: list[float],
        hosts: int | None,
    ) -> Hit:
        """Measure one column closely, and tell all that is known of it."""
        found = self.sketch_at(number)
        counts, keys, own_keys = found.counts, distinct_keys(found).value, distinct_keys(query).value
        return Hit(
            **_fields_of(estimate_sample(join(query, found), how)),
            **_fields_of(found.pair),
            aggregate=found.aggregate,
            score=float(score),
            q_value=float(q_values[0]),
            q_value_by=float(q_values[1]),
            rows=counts.rows,
            distinct_keys=keys,
            dropped_rows=counts.rows - counts.kept_rows,
            rows_per_key=counts.kept_rows / max(keys, 1.0),
            query_key=query.pair.key,
            met=self._met(query, found),
            query_distinct_keys=own_keys,
            query_rows_per_key=query.counts.kept_rows / max(own_keys, 1.0),
            hosts=hosts,
            damaged=self.is_damaged(number),
        )


def _fields_of(said: Estimate | ColumnPair) -> dict[str, Any]:
    # Of plain values only; dataclasses.asdict would copy each, a tenth of what telling a hit takes.
    return {name: getattr(said, name) for name in said.__slots__}


def _hits(
    query: Sketch,
    settings: Settings,
    found: Answer,
    by_chance: tuple[Hit, ...] | None,
    asked: Asked,
    started: float,
) -> Hits:
    """Tell a person what was found, what was asked, and what was left out."""
    how, ranked = settings.how, found.ranked
    constant = count_undefined(ranked.tested)
    return Hits(
        query=QueryNote.of(query),
        candidates=ranked.joinable,
        hidden=ranked.looked_at - int(ranked.tested.sketches.size),
        own=ranked.own,
        unrelated=ranked.unrelated,
        common=int(ranked.common.sum()),
        hosts=ranked.hosts if ranked.common.any() else 0,
        constant=constant,
        tested=int(ranked.tested.sketches.size) - constant,
        survivors=int(np.count_nonzero(found.q_values[settings.correction] <= settings.level)),
        level=settings.level,
        correction=settings.correction,
        max_q=None if settings.max_q is None else float(settings.max_q),
        retrieve=settings.retrieve,
        shortlist=int(found.measured.sketches.size) if found.measured else None,
        undefined=count_undefined(found.measured) if found.measured else 0,
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
        ambiguous=asked.ambiguous,
        damage=asked.damage,
        elapsed_ms=(time.perf_counter() - started) * 1e3,
    )


def open_index(path: str | Path) -> Index:
    """Open an index, checking every file against its checksum. Needs neither Spark nor Java."""
    return Index.open(path)
