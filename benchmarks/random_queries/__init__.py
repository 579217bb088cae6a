"""Random queries that must equal plain Spark SQL (`python -m benchmarks.random_queries`)."""
