"""The Kafka protocol, byte for byte.

This package imports none of the others. Of other projects it imports the compression libraries, each where it is used,
the CRC and numpy. It can send every request and response at an exact version, malformed ones included. It can read
everything in a log, control records and producer ids included.
"""
