"""The logical optimiser: one rule per file; `rules` has them in order.

Nothing is imported here: scans and the catalog need some of its proofs, and not the rules.
"""
