"""python -m covary does what the command covary does."""

from covary.cli.app import main

main()
