"""How messy columns are read and joined, measured where the truth is known: docs/measured/messy.md.

`tables.py` writes the same facts in dozens of ways, which `numbers.py`, `codes.py`, `places.py` and
`times.py` know; `domains.py`, `keys.py` and `truth.py` say what is true of each column and which join;
`real.py` says it of eight real tables. `run.py` indexes and queries them, `reading.py` judges how columns
were read, `judging.py` which joins were found, and `report.py` writes it down.
"""
