"""Kafka → DataFrame: two independent readers behind one schema, and the parser of record values that both share.

`wire_log` speaks Fetch itself and is the only one that shows producer ids, epochs and control records. `client` is
what a consumer of a client library is given, with an isolation level: the witness of what users see.
"""
