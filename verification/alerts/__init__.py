"""Alerts on metrics: their rules, and those that would have fired in a run."""
