"""What touches the world: in, a stage of a plan; out, its committed shuffle files or result.

Knows configuration, catalog, object storage, engines and the Spark session; nothing of Dagster.
"""

from __future__ import annotations
