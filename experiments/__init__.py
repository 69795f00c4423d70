"""The paper's experiments, and the measurements behind docs/, to be run again by anyone: ./run experiments."""
