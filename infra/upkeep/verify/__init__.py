"""Checks of everything that is stored: a storage root, and deduplicated tables.

`verification.verify_storage` runs the checks that `published`, `deduplicated`, `outputs` and
`run_files` yield, and `adopt.adopt_checksums` gives checksums to tables that were written before
there were any.
"""
