"""The mutation test of the judge: it changes clean evidence of real runs on purpose, and judges the mutants.

A judge that finds nothing passes every clean run. So mutators flip, drop, double, move and relabel evidence of real
clusters that was found conformant, seeded, more than a thousand times. Each mutator declares which anomalies its change
makes, by the definitions of `verification.vocabulary.anomalies`, or that it is harmless. It knows nothing of the
checks. A mutant is killed if the judge finds exactly these anomalies; a harmless mutant must pass. The Spark checks and
the reference judge must both be right.

A mutator changes every kind of evidence that would show its change, as far as its sentence says. A lost record is gone
from the log and from all readers, but its acknowledgement stays. A change in one place only is another defect, with a
mutator of its own.

`fixtures/sample_runs` holds the base: real run directories, cut down by `trim_run` to some dozen operations each.
"""
