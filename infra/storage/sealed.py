"""Splits a secret into two shares that travel to tasks by different ways.

Worker code. One share is part of what a task runs, the other is in a property of its job. Each is
random by itself: the secret is their exclusive or, as with a one-time pad, so either of them says
nothing but its length. The driver's side is `stagecoach.infra.spark.secret_channel`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import pickle
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stagecoach.infra.errors import StorageRefusedError

SHARES_PROPERTY = "spark.stagecoach.secret.shares"
"""Name of the property.

Spark redacts names with `secret`, but in the properties of a job only those that the configuration
of its SparkContext has as well. So that has one with this name and no shares in it.
"""

PropertyReader = Callable[[str], str | None]
"""Returns a property of the job of the running task; `TaskContext.getLocalProperty` is one."""

_SEALED, _KEY = "sealed", "share"
_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass(frozen=True)
class Sealed:
    """The two shares of a secret.

    Args:
        values: The share that tasks carry, as plain data.
        other: The other one, by a name of its own, as `shares_text` writes it.
    """

    values: Mapping[str, str]
    other: str = field(repr=False)


def seal(values: Mapping[str, Any]) -> Sealed:
    """Split plain data; each call makes other shares."""
    plain = pickle.dumps(dict(values))
    content = hashlib.sha256(plain).digest() + plain
    pad = secrets.token_bytes(len(content))
    key = secrets.token_hex(8)
    return Sealed({_SEALED: _text(_combined(content, pad)), _KEY: key}, f"{key}:{_text(pad)}")


def shares_text(sealed: Iterable[Sealed]) -> str:
    """The value of the property with which these secrets are opened."""
    return ",".join(one.other for one in sealed)


def opened(values: Mapping[str, Any], read: PropertyReader | None) -> Mapping[str, Any]:
    """Return the data that was sealed; data that is not sealed as it is.

    Args:
        values: What the task carries.
        read: Reads a property of the task's job; None outside of tasks.

    Raises:
        StorageRefusedError: The other share is not here, or does not belong to this one.
    """
    if _SEALED not in values:
        return values
    text = None if read is None else read(SHARES_PROPERTY)
    shares = dict(part.split(":", 1) for part in (text or "").split(",") if ":" in part)
    if (other := shares.get(values[_KEY])) is None:
        raise StorageRefusedError(
            "the credentials that the driver sent have not arrived: Spark did not pass the job's "
            f"property {SHARES_PROPERTY} on to the task"
        )
    return _joined(values[_SEALED], other)


@functools.lru_cache(maxsize=16)
def _joined(share: str, other: str) -> Mapping[str, Any]:
    one, two = base64.b64decode(share), base64.b64decode(other)
    content = _combined(one, two) if len(one) == len(two) else b""
    digest, plain = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if hashlib.sha256(plain).digest() != digest:
        raise StorageRefusedError("the credentials that the driver sent are damaged")
    found: Mapping[str, Any] = pickle.loads(plain)
    return found


def _combined(one: bytes, two: bytes) -> bytes:
    whole = int.from_bytes(one, "big") ^ int.from_bytes(two, "big")
    return whole.to_bytes(len(one), "big")


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
