"""The measurements behind single pages of docs/measured: `./run experiments --page NAME`.

`coverage.py` tries the intervals on many `populations.py`; `chance.py` counts columns of noise among the
survivors; `ranking.py` orders the columns of `lakes.py`, whose joins others have computed; `picture.py` draws
the hits of docs/statistics.md.
"""
