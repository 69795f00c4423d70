"""The paper's experiments, and the measurements behind docs/, for anyone to repeat: ./run experiments."""
