"""Kafka → DataFrame: independent readers behind one schema, and the parser of record values that all of them share.

`source` is the one Spark data source; its option `source` chooses the reader, and `reading` follows the same option for
all four:

* `wire` (`wire_log`) speaks Fetch itself and shows producer ids, epochs and control records.
* `client` is what a consumer of a client library is given, with an isolation level: the witness of what users see.
* `segments` reads the files of a stopped broker, which is what one replica holds, whoever leads.
* `connector` is Spark's own Kafka connector, where a session has it; nothing depends on it.
"""
