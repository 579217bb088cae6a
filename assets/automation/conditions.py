"""When Dagster runs a query on its own, and how old its result may become."""

from typing import Any

import dagster as dg

from stagecoach.assets.project.front_matter import FrontMatter
from stagecoach.assets.project.front_matter.checks import FreshnessCheck

SENSOR_NAME = "stagecoach_on_upstream_change"


def automation_condition(
    front_matter: FrontMatter,
) -> "dg.AutomationCondition[Any] | None":
    """When Dagster makes a query's stages anew; None for only when it is told to.

    It stands on every stage: the head alone does not see that a table below its leaves changed.
    What is upstream must have passed its blocking checks.
    """
    if front_matter.automation is None:
        return None
    condition = dg.AutomationCondition.eager()
    return condition & dg.AutomationCondition.all_deps_blocking_checks_passed()


def automation_sensor(
    keys: list[dg.AssetKey],
    *,
    status: dg.DefaultSensorStatus = dg.DefaultSensorStatus.RUNNING,
) -> dg.AutomationConditionSensorDefinition:
    """The sensor that evaluates the conditions of these assets.

    Args:
        keys: The stages of queries with `automation`.
        status: Whether it runs before anybody has turned it on or off in the UI.
    """
    return dg.AutomationConditionSensorDefinition(
        SENSOR_NAME,
        target=dg.AssetSelection.assets(*keys),
        default_status=status,
        description="Runs queries with `automation: on_upstream_change`.",
    )


def freshness_policy(front_matter: FrontMatter) -> dg.FreshnessPolicy | None:
    """How old the result may be: the strictest of its freshness checks."""
    found = [c.freshness.within for c in front_matter.checks if isinstance(c, FreshnessCheck)]
    return dg.FreshnessPolicy.time_window(fail_window=min(found)) if found else None
