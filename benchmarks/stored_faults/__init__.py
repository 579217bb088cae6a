"""Faults of stored data: bit flips, zeros and cut ends, in every kind of file that is kept.

    python -m benchmarks.stored_faults --faults 240 --seed 1

Each fault is met by a run that computes its result anew from the damaged object. The result must be
the right rows, or an error of ours that names the object or says what is made again; and
`stagecoach storage verify` must name the object.
"""

from __future__ import annotations
