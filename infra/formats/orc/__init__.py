"""ORC files as a table format."""
