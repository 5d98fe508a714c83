"""Fingerprint first: which operations agree in every respect is told by sums; only the others are looked at.

Looking at every record takes a frame as wide as all that is known about a place (`checks.places`), which is what a
judgement spends its time on, and nearly all records are in order. So the log is folded by workers (`scan`, `fold`): per
operation, producer and chunk of a partition, how many records, from where to where, which epochs, and two sums of a
chained hash over place and content, one of them XOR. Outcomes are derived on the folds (`neighbours`), and the folds of
each operation are held against the same sums of both captures, against the acknowledgements, and against what its client
was told (`suspects`). Two look-ups have folds of their own: copies by block of inputs (`copying`), order by stretches of
each writer (`sequence`). Producers' own numbers follow from both folds of the log (`numbering`). Until something is
doubtful Spark sees packs of bytes (`packed`); of them workers pick what is asked for (`picks`), and of the evidence they
let through what is to be read again (`sieve`).

Of a small run one worker holds everything, and it is enough that nothing is in doubt (`in_memory`, `accord`); what live
observers were given is held against the log there as well (`observed`).

The checks themselves are not repeated here. They are given the frames of what is left in doubt (`narrow`), and remain the
one definition of every anomaly. What they find of operations that are not in doubt is dropped by dropping those places,
as they may be there in part only. Why nothing is missed, anomaly by anomaly:

    lost-write             told committed or acknowledged, but the indexes of the committed records are not all of 0 to
                           size - 1, or not those that were acknowledged: number, XOR and sum of their hashes
    duplicate              the same numbers: more committed records than were promised
    torn-transaction       some but not all committed (the same numbers), or not all delivered (hidden-committed)
    hidden-committed       the committed part of the log against the committed capture: number, XOR, sum per operation
    aborted-read           the same; or told aborted and committed by the log
    nonmonotonic-poll      given twice: the number against that capture
    poll-skip              not given: the log against the uncommitted capture
    inconsistent-offset    another content, or one where the log has none: the hash is over place and both digests
    phantom-record         foreign ones are always read; unknown operations, wrong partitions, and indexes beyond the
                           operation are columns of the fold
    zombie-write           superseded and committed; or an epoch below an earlier one, which folds show: where two of them
                           do not overlap their highest and lowest epochs suffice, where they do both are odd
    hung-transaction       a fold without a control record after it is suspect; one that is followed by another
                           operation is odd; what leaders and coordinators say is small and always read
    stuck-lso, stranded-producer    are about ends and operations alone
    offset-without-output, output-without-offset, a copy made twice    sets of offsets as bits, exactly
    reordered-write        offsets that do not rise with the send orders of a writer in a partition, exactly
    broken-sequence        numbers that are not as many as they span, out of step with send orders, or not joined to the
                           producer's fragment before, and fragments whose send orders do not rise: exactly (`numbering`)
    early-read, and whatever live observers were given: large runs that have any are not judged this way (`choice`); small
                           ones are in doubt unless each observer was given what the log holds for it, in its order, up to
                           the last, and if it reads committed records none before its operation decided

A record that is odd or open makes its whole operation suspect, and a place that is given what the log does not hold there
makes everything suspect that may stand there. A missed anomaly therefore takes hashes that agree by chance in 64 bits of
XOR and in the sum of 32 others at once. What needs values of records that are in order gets them: control records and
everything before them of the same transaction, for outcomes and neighbours; the records that raised a producer's epoch,
where it went back.
"""
