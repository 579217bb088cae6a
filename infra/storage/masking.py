"""Settings as they may be shown, with `***` for each secret."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from stagecoach.infra.storage.object_store import StorageOptions, redact_url

MASK = "***"
_SECRET_NAME = re.compile(r"secret|password|passwd|token|credential|access[._-]?key", re.IGNORECASE)
_SECRET_PART = re.compile(r"((?:token|password|secret)=)[^;&\s]+", re.IGNORECASE)


def masked(value: Any) -> Any:
    """The value of a setting as plain data, without secrets."""
    if isinstance(value, StorageOptions):
        hidden = {f.name for f in dataclasses.fields(StorageOptions) if not f.repr}
        given = value.to_dict()
        return {k: MASK if k in hidden else without_secrets(v) for k, v in given.items()}
    if isinstance(value, Mapping):
        return {k: MASK if _SECRET_NAME.search(k) else without_secrets(v) for k, v in value.items()}
    return without_secrets(value)


def holds_secrets(value: Any) -> bool:
    """Whether something of a setting's value must not be shown."""
    plain = value.to_dict() if isinstance(value, StorageOptions) else value
    return bool(masked(value) != plain)


def without_secrets(value: Any) -> Any:
    """A text without the credentials of URLs in it; anything else as it is."""
    if not isinstance(value, str):
        return value
    return _SECRET_PART.sub(rf"\1{MASK}", redact_url(value))
