"""Variables of this process's environment, which other threads set and delete."""

from __future__ import annotations

import os


def variables(*prefixes: str) -> dict[str, str]:
    """Return the variables whose names begin so.

    `os.environ.items()` raises a `KeyError` where another thread deletes one meanwhile.
    """
    found = ((name, os.environ.get(name)) for name in list(os.environ) if name.startswith(prefixes))
    return {name: value for name, value in found if value is not None}
