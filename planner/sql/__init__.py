"""What engines are told: operators and types → SQL text of DuckDB or Spark."""
