"""Hostile and damaged input of every kind, against one law: covary does no harm."""
