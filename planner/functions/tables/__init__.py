"""The rows of the registry, one module per group of functions.

Each module holds one table of `Function` rows; `functions.function` has the rules for them.
"""
