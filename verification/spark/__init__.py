"""Everything about Spark that is no judgement: sessions, dataframes, captures, code in workers."""
