"""Read Spark's SQL: tokens, parser, positions for errors, and statements around a query."""
