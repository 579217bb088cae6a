"""What a stage costs on an object store, measured on a grid of tasks and partitions, with fits.

`docs/scale.md` derives requests, objects and bytes of metadata of a stage from its number of map
tasks and partitions. The constants of these formulas come from here: real runs of small stages on
an S3 server, whose requests a proxy counts, and a least-squares fit over all points.
"""
