"""From violations to a verdict on disk."""
