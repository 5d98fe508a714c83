"""Reports of runs: load saved files into one typed model, decide, and write it in every output format."""
