"""The fault campaign: in, a seed and a number of faults; out, a table of how each kind ended.

python -m benchmarks.faults --faults 500      long
python -m benchmarks.faults --quick           the one of CI, in this process only
"""

from __future__ import annotations
