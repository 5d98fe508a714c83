"""Plain rows of evidence, as the judges without Spark read them.

The names and columns of dataframes are those of `verification.sources.schema`.
"""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
#: Dataframe → its rows.
Rows = dict[str, list[Row]]
#: Column → its values, row by row.
Columns = dict[str, list[Any]]
