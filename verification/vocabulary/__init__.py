"""The words that everything shares: values without files, Spark or Arrow."""
