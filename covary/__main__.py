"""python -m covary does what the command covary does."""

from covary.cli import main

main()
