"""`tox -e bench-verify`: how fast the judge is, beside what anybody would compare it with.

The question is whether verification is worth skipping, and whether it grows with the evidence and not faster. So one
run makes evidence of several sizes, with anomalies planted in it, and gives the same directory to three parties, each in
a process of its own with the same number of threads, by turns:

* **onceproof**: `python -m verification DIRECTORY`, all of it, from the start of the process to its verdict;
* **DuckDB** (`verify.sql`): the same anomalies, found in the way that suits it best, as the yardstick. Fingerprints
first: records are folded to one row per transaction and partition, and only what does not
  agree is looked at record by record. DuckDB also says which findings are consequences of others, and shows what stands
  around the examples of all others (`surroundings.sql`), as the product does;
* **textbook**: one query per anomaly with the joins that come to mind first, on Spark, as the floor.

Every party must find exactly what was planted, place by place, and DuckDB must show the same records around it as the
product, value by value (`log_context`). One that does not is an error and no figure. The textbook shows nothing, which
flatters it.

What is compared is one machine against itself. DuckDB needs neither a JVM nor a plan for several machines,
writes neither witnesses nor sentences, and reads neither the history for its fitness nor who was given what by live
observers; Spark reads evidence that no single machine holds. The bounds are therefore judged from 10^7 records on; below
that, what a process costs before it has read anything is most of what is seen.

Doubtful: evidence is written by one process at full speed and read from the page cache; and its transactions are all of
one size, which real ones are not.
"""
