"""The normative catalogue of exactly-once requirements: data in TOML, one file per family, and what reads it."""
