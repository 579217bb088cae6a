"""Files of queries, read by family.

A file has one query a line; a line `-- name` begins a family.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def read_families(name: str) -> dict[str, list[str]]:
    """The queries of a file, by family."""
    families: dict[str, list[str]] = {}
    queries: list[str] = []
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("-- "):
            queries = families.setdefault(line.removeprefix("-- "), [])
        elif line.strip():
            queries.append(line)
    return families
