"""Spark's lexical rules: which text may reach Spark, and how it is spelled when it does."""
