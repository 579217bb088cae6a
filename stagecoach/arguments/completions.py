"""What a shell completes names to: read from files of the project, without loading it.

A file that is missing or wrong completes nothing: no message may come between the words of a line.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stagecoach.api.session import DEFAULT_CATALOG

if TYPE_CHECKING:
    import click


def table_names(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names of tables in the catalog file that begin so."""
    import yaml

    file = Path(context.params.get("catalog") or DEFAULT_CATALOG)
    try:
        body = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return []
    tables = body.get("tables") if isinstance(body, dict) else None
    names = map(str, tables if isinstance(tables, dict) else ())
    return [name for name in names if name.lower().startswith(incomplete.lower())]
