"""Plans of a project's queries: made, kept in files, checked and shown.

planning    every query in order, over base tables and the tables of other queries
files       compiled plans as text; `pinned` and `compiled` decide which file holds a query's plan
shown       what Dagster displays of a plan
*_problems  every mistake in a query or a project, found without running anything
"""
