"""The judge: compares the evidence of a run with the requirements.

Clients, reports and the judge share `vocabulary`, which is free of Spark. Each package imports only packages that stand
below it in the import contract of `pyproject.toml`.
"""
