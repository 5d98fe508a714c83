"""What must still be true: the requirements, the evidence of a run, and the judge that compares the two.

Clients, reports and the judge share `vocabulary`, which is free of Spark. Each package imports only packages that stand
below it in the import contract of `pyproject.toml`.
"""
