"""The top-k join-correlation query (paper, section 4): the method on one screen."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from covary.arrays import Floats, Integers
from covary.columns.key_text import check_normaliser
from covary.progress import OnCount
from covary.query.candidates import count_undefined, describe_candidates, ignore_progress, order_best_first
from covary.query.explain import explain_hit
from covary.query.hits import Hit, Hits, QueryNote, Standing, make_hit
from covary.query.open_segment import Candidates
from covary.query.options import GivenOptions, QueryOptions, explain_options
from covary.query.rank_candidates import RankedCandidates, rank_candidates
from covary.query.stored_sketches import StoredSketches
from covary.sketching.key_choice import split_key
from covary.sketching.key_columns import SEPARATOR
from covary.sketching.open_table import Frame, KeyName, open_table
from covary.sketching.sketch_table import PairSketches, sketch_table
from covary.sketching.sketch_types import Sketch
from covary.statistics.estimate import HowToMeasure
from covary.statistics.join import join
from covary.statistics.ranking import DEFAULT_RANKER, ranker_named
from covary.statistics.significance import CORRECTIONS, p_values


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Every column that joins, ranked, and the best as hits, in order."""

    ranked: RankedCandidates
    measured: Candidates | None  # by a dearer measure
    q_values: dict[str, Floats]
    best: Integers  # the sketches of the hits, by their numbers in the index
    hits: tuple[Hit, ...]


class Index(StoredSketches):
    """An index opened for questions."""

    @explain_options
    def query(
        self,
        frame: Frame,
        key: KeyName,
        value: str,
        *,
        on_progress: OnCount | None = None,
        **options: Unpack[GivenOptions],
    ) -> Hits:
        """Find the columns that join with a table on `key` and move with its column `value`.

        Args:
            frame: a Polars, pandas or Arrow table, or the path of a file.
            key: the column to join on; or several, in any order, as "date,zip" or ["date", "zip"].
            value: the column of numbers.
            options: QueryOptions.
            on_progress: called with how many columns are done, of how many, while that takes long.
        """
        return self.ask(frame, key, value, QueryOptions(**options), on_progress)

    def ask(
        self,
        frame: Frame,
        key: KeyName,
        value: str,
        options: QueryOptions,
        on_progress: OnCount | None = None,
    ) -> Hits:
        """Answer a query whose options are one value."""
        started = time.perf_counter()
        config = replace(self.config, aggregates=(options.aggregate,))
        check_normaliser(config.normaliser)
        table = open_table(frame, key, value)
        asked = sketch_table(table, value, config, any_order=True)
        queries = [each.sketch for each in asked.at(options.by)]
        left_out = None if options.include_own else self.sketches_made_from(table.path)
        answer = self.answer(queries, options, left_out, on_progress)
        by_chance = None
        if options.null:
            shuffled = [
                replace(query, values=np.random.default_rng(options.seed).permutation(query.values))
                for query in queries
            ]
            rank = DEFAULT_RANKER if ranker_named(options.rank).is_baseline else options.rank
            by_chance = self.answer(
                shuffled, replace(options, max_q=None, rank=rank), left_out, on_progress
            ).hits
        if options.explain:
            explained = (replace(hit, explanation=explain_hit(hit, asked, self)) for hit in answer.hits)
            answer = replace(answer, hits=tuple(explained))
        return _hits(queries[0], options, answer, by_chance, asked, started)

    def answer(
        self,
        query: Sketch | Sequence[Sketch],
        options: QueryOptions,
        left_out: Integers | None = None,
        on_progress: OnCount | None = None,
    ) -> Answer:
        """Score what joins, rank the whole list, measure the best, and test for chance (section 4.4).

        A query may come as several sketches, of which each column joins with one: its times at several
        granularities, finest first; the columns of its key in several orders.
        """
        on_progress = on_progress or ignore_progress
        queries = [query] if isinstance(query, Sketch) else list(query)
        how = options.how
        ranked = rank_candidates(self, queries, options, left_out, on_progress)
        tested, chance, scores = ranked.tested, ranked.chance, ranked.scores
        listed, rows, measured = tested, np.arange(tested.size), None
        if how.dearer:
            rows, _ = order_best_first(tested, scores, options.shortlist)
            listed, own_test = self._measure_again(queries, tested.only(rows), how, on_progress)
            described = describe_candidates(self, queries, listed, how.seed, on_progress, ranked.common[rows])
            scores, measured = ranker_named(options.rank).score(described), listed
            if how.definition.p_value:
                chance = np.where(np.isnan(chance), np.nan, 1.0)  # what was not measured counts as chance
                chance[rows] = own_test
        if options.max_q is not None:
            likely_real = CORRECTIONS[options.correction](chance)[rows] <= options.max_q
            scores = np.where(likely_real, scores, np.nan)
        order, best = order_best_first(listed, scores, options.top)
        rows = rows[order]
        if not how.definition.p_value:
            # A weak hit has not been tested closely yet, and is shown all the same.
            weak = np.isin(np.arange(chance.size), rows) & ~ranked.closely_tested
            moments = self.moments(queries, how.definition.scores_by, tested.only(weak))
            chance[weak] = p_values(moments)
        q_values = {name: correct(chance) for name, correct in CORRECTIONS.items()}
        hits: list[Hit] = []
        for row, score in zip(rows, best, strict=True):
            hosts = ranked.hosts if ranked.common[row] else None
            standing = Standing(float(score), float(q_values["bh"][row]), float(q_values["by"][row]), hosts)
            hits.append(self.hit(queries[tested.asked[row]], tested.sketches[row], how, standing))
        return Answer(ranked, measured, q_values, tested.sketches[rows], tuple(hits))

    def _measure_again(
        self, queries: Sequence[Sketch], shortlist: Candidates, how: HowToMeasure, on_progress: OnCount
    ) -> tuple[Candidates, Floats]:
        """Measure a shortlist by the dearer measure that was asked for; return its p-values, too."""
        values, chance = np.empty(shortlist.size), np.empty(shortlist.size)
        for row, number in enumerate(shortlist.sketches):
            on_progress(row, shortlist.size)
            sample = join(queries[shortlist.asked[row]], self.sketch_at(number))
            values[row] = how.value_of(sample)
            chance[row] = how.p_value_of(sample) if how.definition.p_value else np.nan
        correlations = np.maximum(values, 0) if how.definition.from_zero else values
        return replace(shortlist, correlations=correlations), chance

    def hit(self, query: Sketch, number: int, how: HowToMeasure, standing: Standing) -> Hit:
        """Measure one column closely, and tell all that is known of it."""
        column = self.sketch_at(number)
        met = self._match_columns(query, column)
        return make_hit(query, column, how, standing, met, self.is_damaged(number))

    def _match_columns(self, query: Sketch, column: Sketch) -> tuple[tuple[str, str], ...]:
        """Match the columns of two keys; a name may hold a comma, so a table's columns tell them apart."""
        mine, theirs = query.pair.key, column.pair.key
        if SEPARATOR not in theirs:
            return ((mine, theirs),)
        columns = split_key(theirs, self.columns_of(column.pair.table))
        own = mine.split(SEPARATOR)
        return tuple(zip(own, columns, strict=True)) if len(own) == len(columns) else ((mine, theirs),)


def _hits(
    query: Sketch,
    options: QueryOptions,
    answer: Answer,
    by_chance: tuple[Hit, ...] | None,
    asked: PairSketches,
    started: float,
) -> Hits:
    """Tell a person what joins, what was asked, and what was left out."""
    how, ranked, measured = options.how, answer.ranked, answer.measured
    constant = count_undefined(ranked.tested)
    return Hits(
        query=QueryNote.of(query),
        candidates=ranked.joinable,
        hidden=ranked.looked_at - ranked.tested.size,
        own=ranked.own,
        unrelated=ranked.unrelated,
        common=int(ranked.common.sum()),
        hosts=ranked.hosts,
        constant=constant,
        tested=ranked.tested.size - constant,
        survivors=int(np.count_nonzero(answer.q_values[options.correction] <= options.level)),
        level=options.level,
        correction=options.correction,
        max_q=None if options.max_q is None else float(options.max_q),
        retrieve=options.retrieve,
        shortlist=measured.size if measured else None,
        undefined=count_undefined(measured) if measured else 0,
        scored_by=how.definition.scores_by,
        tested_by=how.tested_by,
        hits=answer.hits,
        by_chance=by_chance,
        measure=how.measure,
        interval=how.interval_name,
        confidence=how.confidence,
        rank=options.rank,
        min_sample=options.fewest_keys,
        seed=how.seed,
        ambiguous=asked.ambiguous,
        damage=asked.damage,
        elapsed_ms=(time.perf_counter() - started) * 1e3,
    )


def open_index(path: str | Path) -> Index:
    """Open an index, checking every file against its checksum. Needs neither Spark nor Java."""
    return Index.open(path)
