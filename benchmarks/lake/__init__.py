"""TPC-H over the formats of lakes: Iceberg, Delta and CSV beside plain Parquet and plain Spark."""
