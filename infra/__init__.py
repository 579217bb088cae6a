"""What touches the world: storage, engines, Spark, and the runs that use them.

Knows configuration, catalog, object storage, engines and the Spark session; nothing of Dagster.
"""

from __future__ import annotations

if __name__ != "stagecoach.infra":
    # The folder is linked into stagecoach/: under two names its classes would exist twice.
    raise ImportError("import stagecoach.infra: 'infra' is its folder in the repository")
