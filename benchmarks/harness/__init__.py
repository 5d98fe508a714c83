"""`tox -e bench`: the cost of this suite, as ratios of things that one run measures by turns.

A figure in seconds says more about a machine than about a program. So everything is compared with something well known,
measured on the same machine, in the same minutes, by turns. The result is the quotient. The absolute figures are shown
next to it as *seen*, and are no promise.

* `starting`: a three-broker cluster with all its links against one bare broker.
* `judging`: the judgement of a run against the run.
* `throughput`: capture and judgement of a million records against a plain consumer that only reads them.

A benchmark of a judge that saw nothing is worthless. So the ordinary clients make the evidence, the verdict must be
PASS, and the judge must have counted every record. Anything else is an error and no figure.

Limit: the two sides of a ratio do not run at the same moment but by turns. If other programs use the machine now and
then, that widens the spread. So the load average at the start is recorded.
"""
