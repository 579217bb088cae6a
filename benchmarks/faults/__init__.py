"""The fault campaign: lets faults happen to runs and counts how each kind ended.

python -m benchmarks.faults --faults 500      long
python -m benchmarks.faults --quick           the one of CI, in this process only
"""

from __future__ import annotations
