"""Kafka → DataFrame: independent readers with common schemas, and the parser of record values that they share.

`source` is the Spark data source; its option `source` chooses the reader. `reading` takes the same option for all four:

* `wire` (`wire_log`) is our own implementation of Fetch, and shows producer ids, epochs and control records.
* `client` reads with the consumer of a client library at an isolation level, as users do.
* `segments` reads the files of a stopped broker: the log of one replica, whichever broker leads.
* `connector` is Spark's own Kafka connector, where a session has it; nothing depends on it.
"""
