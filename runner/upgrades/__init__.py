"""Upgrades: which pairs of releases there are, and the operation that a run performs."""
