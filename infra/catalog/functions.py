"""The key `functions` of a catalog file: Python functions of the project that queries may call.

    functions:
      normalise_sku:                      # the name in SQL
        python: my_project.skus:normalise # module:function
        arguments: [STRING, INT]
        returns: STRING
        kind: scalar                      # or pandas, arrow
        deterministic: true               # false by default
        null_input: call                  # or return_null
        version: "3"                      # instead of a digest of the source

Nothing is imported. The source of a function is looked for when a query that calls it is planned.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stagecoach.infra.functions.loading import SOURCE
from stagecoach.infra.functions.sources import (
    SourceError,
    Stamp,
    file_stamp,
    find_code,
    is_installed,
    root_of,
)
from stagecoach.planner.errors import CatalogError, SqlError
from stagecoach.planner.project_function import KINDS, NULL_INPUTS, ProjectFunction
from stagecoach.planner.text.type_names import duckdb_type
from stagecoach.planner.types import DataType, parse_type, to_arrow

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PYTHON = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_KEYS = (
    "python",
    "arguments",
    "returns",
    "kind",
    "deterministic",
    "null_input",
    "version",
)
_Stamps = Mapping[str, Stamp | None]
CheckKeys = Callable[[str, Mapping[Any, Any], Sequence[str]], None]


class ProjectFunctions:
    """The functions of a catalog file, each with the version of its code.

    Safe to use from several threads. A source that is changed is noticed the next time that `get`
    is asked, so that no query is planned, and no result found again, with an older one.

    Args:
        declared: The functions as the file declares them.
        origin: The catalog file, for messages.
        folder: Its folder, where modules are looked for before Python's own path.
    """

    def __init__(self, declared: Sequence[ProjectFunction], origin: str, folder: str) -> None:
        self._declared = {function.name: function for function in declared}
        self._origin = origin
        self._folder = folder
        self._known: dict[str, tuple[ProjectFunction, _Stamps]] = {}
        self._lock = threading.Lock()

    @property
    def declared(self) -> Sequence[ProjectFunction]:
        """All functions as the file declares them, without the version of their code."""
        return list(self._declared.values())

    @property
    def names(self) -> Sequence[str]:
        """All names, in the order of the file."""
        return list(self._declared)

    def get(self, name: str) -> ProjectFunction | None:
        """Return the function of that name (case does not matter), or None.

        Raises:
            CatalogError: Its source cannot be found.
        """
        declared = self._declared.get(name.lower())
        if declared is None:
            return None
        with self._lock:
            function, stamps = self._known.get(declared.name, (declared, {}))
            if not stamps or any(file_stamp(file) != stamp for file, stamp in stamps.items()):
                function, stamps = self._known[declared.name] = self._with_code(declared)
            return function

    def path(self) -> tuple[str, ...]:
        """Return the folders in which workers look for the code: where it is found here."""
        if not self._declared:
            return ()
        modules = {function.module for function in self._declared.values()}
        roots = {root_of(module, (self._folder,)) for module in modules}
        found = sorted(root for root in roots if root and not is_installed(root))
        return tuple(dict.fromkeys([self._folder, *found]))

    def _with_code(self, declared: ProjectFunction) -> tuple[ProjectFunction, _Stamps]:
        try:
            found = find_code(declared.module, (self._folder,))
        except SourceError as error:
            if declared.code:  # a version is declared, and workers may have what is not here
                return declared, {}
            raise CatalogError(f"{_place(self._origin, declared.name)}: {error}") from error
        name = declared.attribute.partition(".")[0]
        if not declared.code and not found.defines(declared.module, name):
            raise CatalogError(
                f"{_place(self._origin, declared.name)}: module '{declared.module}' does not "
                f"define '{declared.attribute}'"
            )
        stamps = {module.origin: module.stamp for module in found.modules if module.origin}
        stamps |= found.folders
        return replace(declared, code=declared.code or SOURCE + found.digest), stamps


def read_functions(
    origin: str, folder: str, body: object, check_keys: CheckKeys
) -> ProjectFunctions:
    """Return the functions that a catalog file declares.

    Args:
        origin: The catalog file, for messages.
        folder: Its folder.
        body: The value of the key `functions`.
        check_keys: Refuses unknown keys.

    Raises:
        CatalogError: A declaration is not as it must be.
    """
    if not isinstance(body, dict | None):
        raise CatalogError(
            f"catalog {origin}: 'functions' must map names to functions, not {body!r}"
        )
    declared: dict[str, ProjectFunction] = {}
    for name, values in (body or {}).items():
        function = _declared(origin, name, values, check_keys)
        if function.name in declared:
            raise CatalogError(
                f"{_place(origin, name)}: another function has the same name "
                "(case does not matter); rename one"
            )
        declared[function.name] = function
    return ProjectFunctions(list(declared.values()), origin, folder)


def _declared(origin: str, name: object, body: object, check_keys: CheckKeys) -> ProjectFunction:
    place = _place(origin, name)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise CatalogError(
            f"{place}: not a name of a function; use letters, digits and _, not a digit first"
        )
    from stagecoach.planner.functions.builtin import is_builtin  # imports all functions

    if is_builtin(name):
        raise CatalogError(f"{place}: Spark has a function of this name; rename yours")
    if not isinstance(body, dict):
        raise CatalogError(
            f"{place}: expected a mapping with the keys python, arguments and returns, not {body!r}"
        )
    check_keys(place, body, _KEYS)
    for key in ("python", "arguments", "returns"):
        if key not in body:
            raise CatalogError(f"{place}: the key '{key}' is missing")
    python, arguments = body["python"], body["arguments"]
    if not isinstance(python, str) or not _PYTHON.fullmatch(python):
        raise CatalogError(f"{place}: 'python' must be module:function, not {python!r}")
    if not isinstance(arguments, list) or not arguments:
        raise CatalogError(
            f"{place}: 'arguments' must be a list of at least one type, not {arguments!r}"
        )
    deterministic = body.get("deterministic", False)
    if not isinstance(deterministic, bool):
        raise CatalogError(f"{place}: 'deterministic' must be true or false, not {deterministic!r}")
    version = body.get("version")
    if version is not None and (isinstance(version, bool) or not str(version).strip()):
        raise CatalogError(f"{place}: 'version' must be a text or a number, not {version!r}")
    return ProjectFunction(
        name=name.lower(),
        python=python,
        arguments=tuple(_type(place, "arguments", text) for text in arguments),
        returns=_type(place, "returns", body["returns"]),
        kind=_one_of(place, "kind", body.get("kind", KINDS[0]), KINDS),
        deterministic=deterministic,
        null_input=_one_of(
            place, "null_input", body.get("null_input", NULL_INPUTS[0]), NULL_INPUTS
        ),
        code="" if version is None else f"version:{version}",
    )


def _type(place: str, key: str, text: object) -> DataType:
    if not isinstance(text, str):
        found = f"not {text!r}"
        raise CatalogError(f"{place}: '{key}' must name types of Spark, such as STRING, {found}")
    try:
        dtype = parse_type(text)
        to_arrow(dtype)
        duckdb_type(dtype)
    except (SqlError, ValueError) as error:
        raise CatalogError(f"{place}: '{key}': {text!r} is not a type: {error}") from error
    if any(part.is_interval or part.kind == "void" for part in _parts(dtype)):
        raise CatalogError(f"{place}: '{key}': a function cannot have values of type {dtype}")
    return dtype


def _parts(dtype: DataType) -> list[DataType]:
    return [dtype, *(part for field in dtype.fields for part in _parts(field.dtype))]


def _one_of(place: str, key: str, found: object, known: Sequence[str]) -> str:
    if not isinstance(found, str) or found not in known:
        raise CatalogError(f"{place}: '{key}' must be {' or '.join(known)}, not {found!r}")
    return found


def _place(origin: str, name: object) -> str:
    return f"catalog {origin}, function {name!r}"
