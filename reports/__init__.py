"""What we tell the reader: one typed model of a run, and the faces that are made from it, from files alone."""
