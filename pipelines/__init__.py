"""The code location that users edit: queries and a catalog in, Dagster definitions out."""
