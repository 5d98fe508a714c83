"""Rows of the judge about everything that stands: nodes, pipelines, producers, completions, and lags that a metric hides."""
