"""Faults on a standalone cluster: processes killed and frozen, networks, disks and clocks at fault.

python -m benchmarks.cluster_faults --faults 200 --seed 1 --log cluster-faults.jsonl

Each fault happens to a run of several stages at a moment that the seed gives. The run must end in
time with the right rows, or with a clear error after which it goes on from what it has committed.
"""

from __future__ import annotations
