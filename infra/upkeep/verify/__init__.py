"""Checks of everything that is stored: a storage root, and tables that are elsewhere.

`verification.verify_storage` runs the checks that tables (`Table.verifies`), `outputs` and
`run_files` yield, and `adopt.adopt_checksums` gives checksums to tables that were written before
there were any.
"""
