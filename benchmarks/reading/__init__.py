"""How fast each source reads one real log into Spark, side by side (`tox -e bench-reading`)."""
