"""Deduplicated tables: which chunks must be compared with each other, and how they are read."""
