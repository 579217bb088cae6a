"""Results over Flight SQL: throughput, time to the first batch, a soak, abandoned streams.

python -m benchmarks.flight throughput --scale-factor 5
python -m benchmarks.flight soak --seconds 1800 --clients 20
python -m benchmarks.flight abandon --streams 10000
"""

from __future__ import annotations
