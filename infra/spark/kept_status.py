"""How much Spark keeps of what has ended: little, because the UI that would show it is off.

By default the driver holds a thousand plans, jobs and stages, and a hundred thousand tasks of each
stage. In a server that runs stage after stage they fill hundreds of megabytes of its heap, which
the collector goes through again and again.
"""

from __future__ import annotations

from collections.abc import Mapping

_UI_CONF = "spark.ui.enabled"
# Enough for the progress of what runs: it is read of the same store.
_LITTLE = {
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "1000",
}


def without_ui(spark_conf: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration of a Spark without its UI, unless the user's turns it on.

    Args:
        spark_conf: The user's own, which comes after this one.
    """
    if spark_conf.get(_UI_CONF, "false").strip().lower() == "true":
        return {}
    return {_UI_CONF: "false", **_LITTLE}
