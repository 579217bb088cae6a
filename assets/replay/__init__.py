"""Compares what stages of an earlier run come to when DuckDB and Spark run them again."""
