"""DuckDB, as the planner sees it: what it is proven to compute, and its SQL."""
