"""Measurements behind docs/statistics.md, to be run again by anyone: ./run experiments NAME."""
