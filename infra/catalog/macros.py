"""The macros of a project: the `.sql` files in the folder `macros` beside the catalog file.

    pipelines/catalog.yaml
    pipelines/macros/prices.sql        CREATE FUNCTION net_price(…) RETURN …; CREATE VIEW paid AS …

The key `macros` of the catalog file names another folder, or several:

    macros: [macros, ../shared/macros]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stagecoach.planner.errors import CatalogError, SqlError
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.macros.declarations import Macro
from stagecoach.planner.syntax.macros.expand import Macros
from stagecoach.planner.syntax.macros.expansion import SourceText

MACROS_FOLDER = "macros"


def read_macros(
    origin: Path,
    body: object,
    tables: Sequence[str],
    functions: Sequence[ProjectFunction],
) -> Macros:
    """Return the macros of a catalog file's project.

    Args:
        origin: The catalog file.
        body: The value of its key `macros`; None for the default.
        tables: Names of its tables, which no macro may have.
        functions: Its Python functions, likewise.

    Raises:
        CatalogError: A folder does not exist, a file cannot be read, or a macro is not as it must
            be; the message has the file, line and column.
    """
    folders = _folders(origin, body)
    sources = [_source(path) for folder in folders for path in sorted(folder.rglob("*.sql"))]
    if not sources:
        return Macros()
    from stagecoach.planner.functions.builtin import is_builtin  # imports all functions

    changing = frozenset(f.name for f in functions if not f.deterministic)
    try:
        macros = Macros.read(sources, changing)
    except SqlError as error:
        raise CatalogError(error.message) from error
    taken = {table.lower(): f"a table of catalog {origin}" for table in tables}
    taken |= {function.name: f"a function of catalog {origin}" for function in functions}
    found: dict[str, Macro] = {**macros.functions, **macros.queries}
    for name, macro in found.items():
        place = macro.body.source.place(macro.start)
        if name in macros.functions and is_builtin(name):
            raise CatalogError(f"{place}: Spark has a function '{name}'; rename the macro")
        if name in taken:
            message = f"{place}: the macro '{name}' has the name of {taken[name]}; rename one"
            raise CatalogError(message)
    return macros


def _folders(origin: Path, body: object) -> list[Path]:
    home = origin.parent
    if body is None:
        folder = home / MACROS_FOLDER
        return [folder] if folder.is_dir() else []
    names = [body] if isinstance(body, str) else body
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise CatalogError(
            f"catalog {origin}: 'macros' must be a folder of .sql files, or a list of them, not "
            f"{body!r}"
        )
    folders = [home / name for name in names]
    for folder in folders:
        if not folder.is_dir():
            raise CatalogError(f"catalog {origin}: 'macros': there is no folder {folder}")
    return folders


def _source(path: Path) -> SourceText:
    try:
        # utf-8-sig: editors on Windows put a byte order mark first, which is no SQL.
        return SourceText(path.read_text(encoding="utf-8-sig"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"{path} cannot be read: {error}") from error
