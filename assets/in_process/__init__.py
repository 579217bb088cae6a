"""One query run in this process, without a code location: what `Session.query` uses.

`reused_run` answers where every stage is there already; `run` is a run of Dagster.
"""
