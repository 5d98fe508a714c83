"""Fingerprints: judge a large run by sums, and read only the records of operations whose sums disagree.

Reading every record takes a dataframe as wide as everything that is known about a place (`checks.places`), and building
it is most of the work of a judgement. But nearly all records are in order. So workers first aggregate the log (`scan`,
`aggregate`). Per operation, producer and chunk of a partition they count the records and take the first and last
offset, the epochs, and two sums of a chained hash over place and content, one of them XOR. Outcomes follow from these
aggregates (`neighbours`). The aggregates of each operation are compared with the same sums of both captures, with the
acknowledgements, and with the answers to its client (`suspects`). Two questions have aggregates of their own: copies,
by block of inputs (`copying`), and order, by stretches of each writer (`sequence`). Producers' own numbers follow from
both aggregates of the log (`numbering`). Until there is a suspect, Spark only sees packs of bytes (`packed`). Workers
select rows from these packs (`row_selection`), and filter the evidence for the rows to read again (`row_filter`).

One worker holds a small run as a whole. If it has no suspect, it passes (`in_memory`, `agreement`). The records of live
observers are compared with the log there as well (`observer_check`).

The checks themselves are not repeated here. They receive the dataframes of the suspects (`reread`), and remain the only
definition of every anomaly. These dataframes may hold other operations in part only, so findings about those are
dropped, by dropping their places. Why nothing is missed, anomaly by anomaly:

    lost-write             told committed or acknowledged, but the indexes of the committed records are not all of 0 to
                           size - 1, or not those that were acknowledged: number, XOR and sum of their hashes
    duplicate              the same numbers: more committed records than were promised
    torn-transaction       some but not all committed (the same numbers), or not all delivered (hidden-committed)
    hidden-committed       the committed part of the log against the committed capture: number, XOR, sum per operation
    aborted-read           the same; or told aborted and committed by the log
    nonmonotonic-poll      delivered twice: the number against that capture
    poll-skip              not delivered: the log against the uncommitted capture
    inconsistent-offset    other content, or content where the log has none: the hash is over place and both digests
    phantom-record         foreign records are always read; unknown operations, wrong partitions, and indexes beyond the
                           operation are columns of the aggregate
    zombie-write           superseded and committed; or an epoch below an earlier one. If two aggregates do not overlap,
                           their highest and lowest epochs show it; if they overlap, both are odd
    hung-transaction       an aggregate without a control record after it is suspect; one that is followed by another
                           operation is odd; the states of leaders and coordinators are small and always read
    stuck-lso, stranded-producer, lost-node, no-progress, silent-metric   depend on ends, samples, operations and steps alone
    state-divergence       depends on the counts of outputs alone, which have a file of their own and are always read
    offset-without-output, output-without-offset, a copy made twice    sets of offsets as bits, exactly
    aborted-read by a copier    an input that was copied and not delivered: the same sets
    reordered-write        offsets that do not rise with the send orders of a writer in a partition, exactly
    broken-sequence        numbers that are not as many as they span, out of step with send orders, or not joined to the
                           producer's fragment before, and fragments whose send orders do not rise: exactly (`numbering`)
    early-read, and all records of live observers: large runs with observers do not use fingerprints (`strategy`). A
                           small run is suspect unless each observer received what the log holds for it, in order, up to
                           the last record; a committed reader nothing before its operation decided

A record that is odd or open makes its whole operation suspect. If a reader received something that the log does not
hold at that place, everything that may be at that place is suspect. So an anomaly is missed only if hashes agree by
chance in 64 bits of XOR and in the sum of 32 others at once. Some checks need records that are in order. These are read
too: control records and everything before them in the same transaction, for outcomes and neighbours; and the records
that raised a producer's epoch, if it went back later.
"""
