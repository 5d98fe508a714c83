"""What must still be true: the requirements, the evidence of a run, and the judge that compares the two.

The vocabulary (`identity`, `history`, `experiment`, `captures`, `layout`, `verdict`) is free of pyspark, because clients,
reports and the judge share it; `sources`, `evidence`, `checks` and `judge` are Spark jobs.
"""
