"""What single replicas hold, read from the data directories of stopped brokers, and whether they hold the same.

A leader's answers say nothing about its followers until one of them leads. Here every replica is read from its own
files (`directory`, `segments`) and compared offset by offset (`compare`). Free of pyspark: files of one machine are read
at the speed of a disk, with memory for a few batches, and what differs is a handful of records.
"""
