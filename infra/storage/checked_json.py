"""JSON objects that tell whether they are damaged: text with a checksum at its end, and back.

    {"a": 1, "b": 2}  ─▶  {"a": 1, "b": 2, "checksum": 2868459201}

The checksum is the CRC-32C of the text before it, byte by byte. Text without one was written by an
earlier version of Stagecoach and is taken as it is.

Worker code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import google_crc32c

_SEAL = re.compile(rb', "checksum": ([0-9]+)\}\Z')


def dump(values: Mapping[str, Any]) -> bytes:
    """Return values as JSON text with its checksum; at least one value, none named `checksum`."""
    return seal([json.dumps(values, sort_keys=True, ensure_ascii=False)[:-1].encode()])


def seal(parts: Sequence[bytes]) -> bytes:
    """Return the text of a JSON object with its checksum.

    Args:
        parts: The text of at least one value, without the closing brace. It may be hundreds of
            megabytes, so it is joined only once.
    """
    checksum = 0
    for part in parts:
        checksum = google_crc32c.extend(checksum, part)
    return b"".join([*parts, b', "checksum": %d}' % checksum])


def is_sealed(text: bytes) -> bool:
    """Return whether a text has a checksum, right or wrong."""
    return _SEAL.search(text) is not None


def load(text: bytes, made: Callable[[dict[str, Any]], Any] | None = None) -> dict[str, Any]:
    """Return the values of a JSON object, without the checksum.

    Args:
        text: As `dump` and `seal` write it.
        made: What becomes of each object inside while the text is parsed; a million small objects
            take less memory than their dictionaries.

    Raises:
        ValueError: The text is damaged, or is no JSON object.
    """
    found = _SEAL.search(text)
    if found is not None and google_crc32c.value(text[: found.start()]) != int(found[1]):
        raise ValueError("checksum mismatch")
    values = json.loads(text, object_hook=made)
    if not isinstance(values, dict):
        raise ValueError("it is not a JSON object")
    values.pop("checksum", None)
    return values
