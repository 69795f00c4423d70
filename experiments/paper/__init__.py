"""Section 5 of the paper, repeated on any collection of tables: `./run experiments sbn` or a folder.

`run.py` goes through the stages in order and keeps what each found as Parquet (`workplace.py`), so that a
stage is not repeated:

- the collections: `sbn.py` makes the paper's synthetic tables, `folders.py` takes a folder of real ones with
  the exact join of every two columns, `example.py` is a small one for a quick try; `exact.py` says what is
  measured of a join;
- what is measured: `estimates.py` (5.2, 5.3), `intervals.py`, `rankings.py` (5.4), `queries.py` with
  `answers.py` (5.5), `index_size.py` and `timings.py`;
- what is shown: `figure3.py` to `figure5.py`, `table1.py`, `table2.py`, put together by `report.py`.
"""
