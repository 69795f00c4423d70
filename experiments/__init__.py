"""The paper's experiments, and the measurements behind docs/, for anyone to repeat: ./run experiments.

- `paper/`: section 5 of the paper on any collection of tables, with a report;
- `measured/` and `messy/`: what the pages of docs/measured report;
- `pages/`: the pages of docs/ that are made from the code.

All of them use `indexes.py` (sketches kept as rows, indexes made of them), `metrics.py` (how good an order
is), `artefact.py` (a figure or table of the report) and `writing.py` (Markdown).
"""
