"""Results over Flight SQL: throughput, time to the first batch, a soak, abuse, TPC-H.

python -m benchmarks.flight throughput --scale-factor 5
python -m benchmarks.flight first-batch
python -m benchmarks.flight soak --seconds 1800 --clients 20
python -m benchmarks.flight abuse --streams 10000
python -m benchmarks.flight tpch --scale-factor 1
"""

from __future__ import annotations
