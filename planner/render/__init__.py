"""Write the fragment of a stage as SQL for DuckDB or Spark."""
