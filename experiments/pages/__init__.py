"""Pages of docs/ that the code writes: the rooms, the commands, the Python names (./run docs)."""
