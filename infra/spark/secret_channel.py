"""Sends the credentials of a storage to the tasks of a job, where nobody else sees them.

What tasks carry has one share of a secret, a property of their job the other one
(`stagecoach.infra.storage.sealed`). It is a setting of the session, which Spark passes on to the
tasks of queries as such a property. Other jobs do not get settings, so classic Spark, which runs
RDDs, has it as a local property of the thread as well. Sparks that we start redact it in their
event logs (`safe_conf.REDACTED_CONF`).
"""

from __future__ import annotations

import hashlib
import pickle
import re
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark.session_kinds import is_connect
from stagecoach.infra.storage.forwarding import completed
from stagecoach.infra.storage.masking import holds_secrets
from stagecoach.infra.storage.object_store import StorageOptions, redact_url
from stagecoach.infra.storage.sealed import SHARES_PROPERTY, Sealed, seal, shares_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REDACTION = "spark.redaction.regex"
_DEFAULT_REDACTION = "(?i)secret|password|token|access[.]?key"
# A store of a run, its catalog's, and those whose credentials have just been renewed.
_KEPT_SHARES = 8
_lock = threading.Lock()
# By a hash of what they are of, the oldest first.
_sealed: weakref.WeakKeyDictionary[SparkSession, dict[str, Sealed]] = weakref.WeakKeyDictionary()


@contextmanager
def sent(spark: SparkSession, store: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what the tasks of a job carry for a store; jobs that start in the block can open it.

    Args:
        spark: The session that starts the jobs, in this thread.
        store: The store, as `stagecoach.infra.storage.forwarding.marked` describes it.

    Raises:
        ConfigError: Spark would show the property.
        CredentialsError: The driver's credentials are to be sent, and there are none.
    """
    plain = completed(store)
    if not _is_secret(plain):
        yield plain
        return
    with _lock:
        found = _of_session(spark, plain)
    if is_connect(spark):
        yield found.values
        return
    context = spark.sparkContext
    context.setLocalProperty(SHARES_PROPERTY, shares_text([found]))
    try:
        yield found.values
    finally:
        if context._jsc is not None:
            context.setLocalProperty(SHARES_PROPERTY, None)  # type: ignore[arg-type]  # removes


def _of_session(spark: SparkSession, plain: Mapping[str, Any]) -> Sealed:
    """The shares of a store for the jobs of a session, which gets the other one once.

    Its setting has all recent ones, because threads start jobs of one session side by side.
    """
    content = hashlib.sha256(pickle.dumps(plain)).hexdigest()
    shares = _sealed.get(spark, {})
    if (found := shares.get(content)) is None:
        _check_redaction(spark)
        found = seal(plain)
        recent = dict([*shares.items(), (content, found)][-_KEPT_SHARES:])
        spark.conf.set(SHARES_PROPERTY, shares_text(recent.values()))
        _sealed[spark] = recent
    return found


def _is_secret(values: Mapping[str, Any]) -> bool:
    url = str(values["url"])
    options = StorageOptions.from_dict(values.get("options", {}))
    return redact_url(url) != url or holds_secrets(options)


def _check_redaction(spark: SparkSession) -> None:
    """Refuse to send secrets where Spark writes the property as it is."""
    if is_connect(spark):
        pattern = spark.conf.get(_REDACTION, None)
    else:
        pattern = spark.sparkContext.getConf().get(_REDACTION, None)
    pattern = pattern or _DEFAULT_REDACTION
    try:
        hidden = re.search(pattern, SHARES_PROPERTY) is not None
    except re.error:  # Java has forms of its own
        hidden = "secret" in pattern.lower()
    if not hidden:
        raise ConfigError(
            f"the credentials of the storage are not sent to Spark's executors: {_REDACTION} is "
            f"{pattern!r}, so Spark would write properties with `secret` in their names to its "
            "event log; add `secret` to it, or set `credentials: executor` and leave the keys out "
            "of the storage options"
        )
