"""Load the code of a function in a worker: the version that the query was planned with, or none.

Worker code. Python workers live longer than a query, so a module that was imported by name could be
an older version. Modules of the project are therefore compiled from the very text whose digest is
compared with the plan's, and are made again if any of them has changed.
"""

from __future__ import annotations

import importlib
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import reduce
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any

from stagecoach.infra.errors import FunctionError
from stagecoach.infra.functions.sources import (
    ModuleCode,
    ModuleSource,
    SourceError,
    find_code,
    is_installed,
)
from stagecoach.planner.project_function import ProjectFunction

SOURCE = "source:"
"""Begins `ProjectFunction.code` where that is a digest; a declared version begins otherwise."""

_lock = threading.RLock()
_loaded: dict[tuple[str, str, tuple[str, ...]], Callable[..., Any]] = {}


def load_function(function: ProjectFunction, path: Sequence[str] = ()) -> Callable[..., Any]:
    """Return the code of a function, imported once in a process.

    Args:
        function: The function, with the version of its code.
        path: Folders to look in before Python's own path.

    Raises:
        FunctionError: It cannot be imported here, has changed, or cannot be called.
    """
    key = (function.python, function.code, tuple(path))
    with _lock:
        if key not in _loaded:
            _loaded[key] = _load(function, path)
        return _loaded[key]


def _load(function: ProjectFunction, path: Sequence[str]) -> Callable[..., Any]:
    try:
        code = find_code(function.module, path)
    except SourceError as error:
        if function.code.startswith(SOURCE):
            raise _unusable(function, f"{error}; install it there") from error
    else:
        if function.code.startswith(SOURCE) and function.code != SOURCE + code.digest:
            raise _unusable(
                function,
                "its source is not the one that the query was planned with; plan the query again "
                "(reload the code location, or compile a compiled plan again)",
            )
        if not is_installed(code.root):  # else Python imports it, and others may have already
            _finder.take(code)
    try:
        module = importlib.import_module(function.module)
    except Exception as error:  # whatever the module's own text raises
        problem = f"importing module '{function.module}' failed: {type(error).__name__}: {error}"
        raise _unusable(function, problem) from error
    try:
        found = reduce(getattr, function.attribute.split("."), module)
    except AttributeError:
        problem = f"module '{function.module}' has no '{function.attribute}'"
        raise _unusable(function, problem) from None
    if not callable(found):
        raise _unusable(function, f"it is a {type(found).__name__}, which cannot be called")
    return found


def _unusable(function: ProjectFunction, problem: str) -> FunctionError:
    return FunctionError(function.name, function.python, f"on {socket.gethostname()}, {problem}")


class _ProjectFinder(MetaPathFinder):
    """Gives the modules of projects from the sources that were read last."""

    is_of_project = True

    def __init__(self) -> None:
        self._modules: dict[str, ModuleSource] = {}

    def take(self, code: ModuleCode) -> None:
        """Have imports find these modules, anew if one of them is not the one that is loaded."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        taken = {module.name: module for module in code.modules}
        if any(self._modules.get(name) != module for name, module in taken.items()):
            for module in code.modules:
                if not module.is_ambiguous or _is_loaded(module):
                    sys.modules.pop(module.name, None)
            # What has been loaded may import one of them only when it is called.
            _loaded.clear()
        self._modules.update(taken)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what makes the module, if it is one of a project."""
        del path, target
        found = self._modules.get(fullname)
        if found is None or found.is_ambiguous:  # which of the two it is, Python's path decides
            return None
        if not found.origin:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = list(found.folders)
            return spec
        return spec_from_file_location(
            fullname,
            found.origin,
            loader=_SourceLoader(found),
            submodule_search_locations=list(found.folders) or None,
        )


def _is_loaded(module: ModuleSource) -> bool:
    """Whether the module that is loaded by the name comes from the file of this one."""
    return getattr(sys.modules.get(module.name), "__file__", None) == module.origin


class _SourceLoader(Loader):
    """Runs a text that has been read; Python's own loader may take compiled code of another one."""

    def __init__(self, module: ModuleSource) -> None:
        self._module = module

    def exec_module(self, module: ModuleType) -> None:
        """Run the text in a new module."""
        text = compile(self._module.source, self._module.origin, "exec", dont_inherit=True)
        exec(text, module.__dict__)


_finder = _ProjectFinder()
