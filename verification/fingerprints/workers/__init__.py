"""The half of the fast path that runs in Spark's workers: numpy and Arrow only."""
