"""Spark's HyperLogLog++, which estimates how many distinct values there are. Worker code, too."""
