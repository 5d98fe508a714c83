"""`tox -e bench-verify`: how fast the judge is, compared with two other formulations of the same anomalies.

The questions are whether verification takes too long to run always, and whether its time grows no faster than the
evidence. So one run makes evidence of several sizes with planted anomalies. It gives the same directory to three
contenders by turns, each in a process of its own with the same number of threads:

* **onceproof**: `python -m verification DIRECTORY`, all of it, from the start of the process to its verdict;
* **DuckDB** (`verify.sql`), the yardstick: the same anomalies, in the way that suits DuckDB best. It uses fingerprints
  first: it aggregates records to one row per transaction and partition, and checks record by record only where these
  disagree. It also attributes consequences to findings, and shows the records around the examples of all findings
  (`surroundings.sql`), as the product does;
* **textbook**, the floor: one query per anomaly, with the obvious joins, on Spark.

Every contender must find exactly the planted violations, place by place. DuckDB must show the same records around them
as the product, value by value (`log_context`). A contender that does not is an error and no figure. The textbook shows
no records, which flatters it.

The comparison is for one machine. DuckDB needs neither a JVM nor a plan for several machines. It writes neither
witnesses nor sentences, does not check the assumptions of the history, and does not read the records of live observers.
Spark reads evidence that no single machine holds. So the bounds are judged from 10^7 records on. With fewer records,
most of the time is the start of the process.

Limit: one process writes the evidence at full speed, and it is read from the page cache. All its transactions have one
size, which real ones do not.
"""
