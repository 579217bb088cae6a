"""Which of a user's settings of Spark may decide what rows a query gives."""

from __future__ import annotations

from collections.abc import Mapping

from stagecoach.infra.config.settings import ANSI_CONF, ZONE_CONF
from stagecoach.infra.spark.safe_conf import SAFE_CONF

_SQL = "spark.sql."
_FIXED = frozenset((ANSI_CONF, ZONE_CONF, *SAFE_CONF))
"""Settings that every session of ours has set itself."""

_ONLY_SPEED = (
    "spark.sql.adaptive.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.catalog.",
    "spark.sql.codegen.",
    "spark.sql.execution.arrow.",
    "spark.sql.extensions",
    "spark.sql.files.max",
    "spark.sql.files.min",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.shuffle.",
    "spark.sql.streaming.",
    "spark.sql.ui.",
    "spark.sql.warehouse.dir",
)
"""Beginnings of names of settings that leave the rows of a query as they are."""


def row_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with which Spark may give other rows or types.

    That is all but those that are known to decide only how fast it is.

    Args:
        conf: Settings of Spark by name.
    """
    return {
        name: value
        for name, value in conf.items()
        if name.startswith(_SQL) and name not in _FIXED and not name.startswith(_ONLY_SPEED)
    }
