"""Scripts of protocol cases, and how they are judged."""
