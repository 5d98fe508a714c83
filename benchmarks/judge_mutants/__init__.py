"""The mutation test of the judge: clean evidence of real runs, changed on purpose, and judged.

A judge that acquits everything passes every clean run. So evidence of real clusters that were found conformant is
flipped, dropped, doubled, moved and relabelled, seeded, a thousand times and more. Each mutator says beforehand
which anomalies its change makes by the definitions of `verification.vocabulary.anomalies`, or that it is harmless; it
knows nothing of how they are checked. A mutant that breaks something must be convicted of exactly that, a harmless one
acquitted, by the Spark checks and by the reference judge alike.

What a mutator changes it changes in every kind of evidence that would show it, as far as its sentence says: a
record that is lost is gone from the log and from all readers, but its acknowledgement stays. A change in one place
only is a mutator of its own, because that is another defect.

`fixtures/sample_runs` holds the base: real run directories, cut down by `trim_run` to some dozen operations each.
"""
