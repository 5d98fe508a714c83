"""The Kafka protocol, byte for byte.

This room imports nothing of the other rooms, and no third party but the compression libraries, each where it
is used. Whatever a broker or a client can say can be said here at an exact version, including what no well-behaved
client would say, and whatever a log holds can be read here, control records and producer ids included.
"""
