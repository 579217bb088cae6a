"""Locations as metadata of tables spells them, and as the rest of Stagecoach does."""

from __future__ import annotations

import re

_FILE = re.compile(r"file:/*")


def canonical_path(location: str) -> str:
    """Return an absolute path for a local file, else a URL with the scheme that stores go by.

    Iceberg's writers escape nothing in locations, and Hadoop writes `file:/a` for `file:///a`.
    """
    if location.startswith(("s3a://", "s3n://")):
        return f"s3://{location.split('://', 1)[1]}"
    return _FILE.sub("/", location, count=1) if location.startswith("file:") else location
