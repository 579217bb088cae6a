"""Macros of the project: SQL functions and shared queries that are written into a query's text."""
