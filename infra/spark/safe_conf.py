"""Configuration with which a SQL text means what it says, on every session.

Spark replaces `${env:NAME}` in a text, quoted or not, with a variable of its environment, and reads
files that a text names. Both are off on every session of ours, whoever owns the server.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stagecoach.infra.storage.sealed import SHARES_PROPERTY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_SUBSTITUTE = "spark.sql.variable.substitute"

SAFE_CONF = {_SUBSTITUTE: "false", "spark.sql.runSQLOnFiles": "false"}
"""Settings of a session, which win over a user's."""

REDACTED_CONF = {SHARES_PROPERTY: "none"}
"""Has a Spark that we start redact shares of secrets in its event log."""

GUARD_CONF = "spark.stagecoach.guard"
"""Set by a server that walks the plans of all queries by itself (`infra.spark.connect_app`)."""


def apply_safe_conf(session: SparkSession) -> None:
    """Set the safe configuration; a server may refuse, which `substitutes_variables` tells."""
    from pyspark.errors import PySparkException  # whoever needs the names alone starts quickly

    for name, value in SAFE_CONF.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            log.warning("Spark does not let %s be set: %s", name, error.getCondition())


def substitutes_variables(session: SparkSession) -> bool:
    """Whether the session would replace `${…}` in a text."""
    return str(session.conf.get(_SUBSTITUTE, "true")).lower() != "false"


def is_guarded(session: SparkSession) -> bool:
    """Whether the server of a Connect session walks the plans of queries by itself."""
    return str(session.conf.get(GUARD_CONF, "")) == "true"
