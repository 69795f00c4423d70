"""Speed and size, always as ratios measured side by side in one run: ./run bench.

- Each against its floor, by name (`suites.py`): `kernel.py`, `pipeline.py`, `keys.py`, `queries.py`,
  `memory.py` and `statistics.py`.
- Against what people use today, on one synthetic lake: `against.py`, `peers.py`, `lake.py`, `growth.py`.
- At scale (`--scale`): `atscale.py`, with the indexes of `scale.py` and the upkeep of `living.py`.
- Against an earlier commit (`--since`): `since.py` runs `timed.py` in the trees of both.

`measure.py` is how all of them measure.
"""
