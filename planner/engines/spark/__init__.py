"""Spark, as the planner sees it: it may run every fragment."""
