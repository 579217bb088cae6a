"""The second wall around Spark: its own plans are walked before anything runs."""
