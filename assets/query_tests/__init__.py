"""Unit tests of queries: given rows, a query of the project, and the rows that it must give.

    tests/<query>.yaml ─▶ model, with places ─▶ plan of the query over the given tables
                                                   │
                     expected rows ◀─ compared ─ rows, run in this process ┘

`files`, `model` and `parse` read the files, `rows` makes tables of what they give, `unit` plans the
query or one of its CTEs, `run` runs it, `compare` tells how rows differ. All of it does without
Dagster.
"""
