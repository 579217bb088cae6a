"""Damage to stored files: checksums made at writing, and checks of them before anything is read.

Worker code. See `checksums` for what is kept of a file, `parquet` and `arrow` for the checks of one
file, `local` for checks before an engine opens a file itself, and `records` for what is not checked
again.
"""
