"""The files of a run: each format has one reader, and a run is judged only when they fit together."""
