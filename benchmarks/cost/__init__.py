"""`tox -e cost`: the cost of transactions on Apache Kafka, for those who decide whether to use them.

Three brokers of this machine (three replicas, two in sync, acks=all) and the producers and consumers of confluent-kafka,
without the links that scenarios cut. Two things are measured by turns, in the same minutes on the same cluster, and the
figure is their ratio:

* `throughput`: an idempotent producer against a transactional one, by the number of records in a transaction;
* `partitions`: the same by the number of partitions that a transaction writes to, with the markers that it leaves;
* `replication`: the same with one replica and three, and acks=1 against acks=all;
* `protocols`: transactions of protocol 2 against those of protocol 1, by requests of the wire client;
* `completion`: the time of the last marker against that of the answer to the commit;
* `delivery`: the time from send to delivery under read_committed against read_uncommitted, at the same time;
* `memory`: a consumer under read_committed against one under read_uncommitted, while a long transaction is open;
* `idempotence`: an idempotent producer against a plain one;
* `streams`: Kafka Streams with exactly_once_v2 against at_least_once;
* `producer-ids`: a broker that remembers many producer ids against the same broker without;
* `loading`: a coordinator that takes over many transactional ids against one that takes over none;
* `pending`: OffsetFetch with require_stable against without, by the number of transactions with pending offsets.

The requirements PERF-01 to PERF-07 describe these costs and set no bound. So this command decides nothing.

Limit: brokers and clients share the processors of one machine, and no network lies between them. A commit is a chain of
requests, each of which a network makes longer, so absolute values say nothing about another cluster.
"""
