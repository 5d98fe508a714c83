"""`tox -e bench`: what this suite costs, as ratios of things measured side by side in one run.

A figure in seconds says more about a machine than about a program. Here everything that is measured is measured
next to something that anybody knows, on the same machine, in the same minutes, by turns; what is reported is the
quotient. The absolute figures are shown beside it as *seen*, and are no promise.

* `starting`: a three-broker cluster with all its links against one bare broker.
* `judging`: the judgement of a run against the run.
* `throughput`: capture and judgement of a million records against a plain consumer that merely reads them.

A benchmark of a judge that saw nothing is worthless. So the evidence is made by the ordinary clients, the verdict must
be PASS, and the judge must have counted every record; anything else is an error and no figure.

Doubtful: the parties of one ratio do not run at the same moment but by turns, so a machine that is busy with other
things by fits and starts shows in the spread. The load average at the start is written down for that reason.
"""
