"""Find the source of a function without importing it.

Worker code. The code of a function is its module, the packages around that, and the modules of the
project that they import, in turn: those that lie in the folder where the module was found, or, for
an installed package, in the package. What is imported otherwise is not found here: an installed
library, or a module whose name is computed.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from stagecoach.infra.host.import_path import forget_missing_modules
from stagecoach.planner.cached_property import cached_property

_INSTALLED = ("site-packages", "dist-packages")
# Never taken for a module of the project, even where the project lies beside it.
_NOT_OF_PROJECTS = frozenset(("stagecoach",))


Stamp = tuple[int, int, int]
"""What changes when a file is written: its size, and when its content and its inode changed."""


class SourceError(Exception):
    """The source of a module cannot be found or read; says why, without naming the function."""


@dataclass(frozen=True)
class ModuleSource:
    """A module of the project.

    Args:
        name: Its full name.
        origin: The file; empty for a package without `__init__.py`.
        source: Its text.
        folders: Where its submodules are; empty unless it is a package.
        stamp: The file as it was before it was read.
        is_ambiguous: Whether Python may know another module by this name: one of its own.
    """

    name: str
    origin: str
    source: bytes = field(repr=False)
    folders: tuple[str, ...] = ()
    stamp: Stamp | None = field(default=None, compare=False)
    is_ambiguous: bool = False

    def imported_names(self) -> Iterator[str]:
        """Names that may be modules and that the module imports, anywhere in its text.

        Raises:
            SourceError: The text is not Python.
        """
        try:
            tree = ast.parse(self.source, self.origin)
        except (SyntaxError, ValueError) as error:
            where = f"module '{self.name}' ({self.origin})"
            raise SourceError(f"{where} cannot be parsed: {error}") from error
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)

    def defines(self, name: str) -> bool:
        """Whether the module may have a global of that name."""
        for node in ast.walk(ast.parse(self.source, self.origin)):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    found = node.name
                case ast.Name(ctx=ast.Store()):
                    found = node.id
                case ast.alias():
                    found = (node.asname or node.name).partition(".")[0]
                case _:
                    continue
            if found in (name, "*"):
                return True
        return False

    def _absolute(self, node: ast.ImportFrom) -> str:
        """The module of `from … import`; dots count from the module's package."""
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.folders else self.name.split(".")[:-1]
        parts = package[: len(package) - node.level + 1]
        return ".".join([*parts, *filter(None, [node.module])])


@dataclass(frozen=True)
class ModuleCode:
    """A module with all modules of the project that it is made of.

    Args:
        root: The folder from which it is imported.
        modules: The modules, by name.
        folders: The folders that were looked into, as they were before: another file in one of them
            may be a module that was not there.
    """

    root: str
    modules: tuple[ModuleSource, ...]
    folders: Mapping[str, Stamp | None] = field(default_factory=dict, compare=False, repr=False)

    def defines(self, module: str, name: str) -> bool:
        """Whether one of the modules may have a global of that name."""
        return any(found.defines(name) for found in self.modules if found.name == module)

    @cached_property
    def digest(self) -> str:
        """A digest of all sources, the same wherever they lie (32 hex digits)."""
        found = hashlib.sha256()
        for module in self.modules:
            found.update(f"{module.name}\0{len(module.source)}\0".encode() + module.source)
        return found.hexdigest()[:32]


def find_code(module: str, path: Sequence[str] = ()) -> ModuleCode:
    """Find a module and what it is made of; nothing is imported.

    Args:
        module: Its full name.
        path: Folders to look in before Python's own path.

    Raises:
        SourceError: The module is not there, or is not written in Python.
    """
    forget_missing_modules()
    search = _Search(module, path)
    wanted, found = [module], dict[str, ModuleSource]()
    while wanted:
        name = wanted.pop()
        for part in _with_parents(name):
            if part in found:
                continue
            source = search.module(part)
            if source is None:
                if part == module or module.startswith(f"{part}."):
                    raise SourceError(search.missing(part))
                break
            found[part] = source
            wanted += source.imported_names()
    if not found[module].origin:
        raise SourceError(f"module '{module}' is a folder without __init__.py")
    modules = tuple(found[name] for name in sorted(found))
    return ModuleCode(search.root, modules, search.folders)


def root_of(module: str, path: Sequence[str] = ()) -> str:
    """Return the folder from which a module would be imported; empty if it is not there."""
    forget_missing_modules()
    return _Search(module, path).root


def file_stamp(file: str) -> Stamp | None:
    """Return what tells the file from a later version of it; None where it is none of its own."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


class _Search:
    """Looks modules up where the project has them: in the folder that has the one asked for.

    Args:
        module: The module that is asked for.
        path: Folders to look in first.
    """

    def __init__(self, module: str, path: Sequence[str]) -> None:
        self._top = module.partition(".")[0]
        self._path = list(path)
        self._known: dict[str, ModuleSource | None] = {}
        self.folders: dict[str, Stamp | None] = {}
        spec = PathFinder.find_spec(self._top, self._path) or _anywhere(self._top)
        self._spec = spec
        self.root = "" if spec is None else _root(spec)
        self._folders = [self.root] if self.root and not is_installed(self.root) else []

    def module(self, name: str) -> ModuleSource | None:
        """The module of that name; None if the project has none."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def missing(self, name: str) -> str:
        """What to say of a module that is needed and not there."""
        if self._spec is not None and name == self._top:
            return (
                f"module '{name}' ({self._spec.origin}) has no Python source; declare its 'version'"
            )
        beside = f"in {', '.join(self._path)} or " if self._path else ""
        return f"module '{name}' was not found {beside}on Python's path"

    def _find(self, name: str) -> ModuleSource | None:
        parent, _, _ = name.rpartition(".")
        if name == self._top:
            spec = self._spec
        elif parent:
            above = self.module(parent)
            if above is None or not above.folders:
                return None
            try:
                spec = self._look(name, above.folders)
            except KeyError:  # a package without `__init__.py` asks its parent, which is not loaded
                places = (Path(folder, name.rpartition(".")[2]) for folder in above.folders)
                folders = tuple(str(place) for place in places if place.is_dir())
                return ModuleSource(name, "", b"", folders)
        elif not name or name in _NOT_OF_PROJECTS:
            return None
        else:
            # A file of the project that has the name of a module of Python's own may hide that.
            spec = self._look(name, self._folders)
        found = None if spec is None else _read(name, spec)
        top = name.partition(".")[0]
        is_ambiguous = top in sys.stdlib_module_names and top != self._top
        return replace(found, is_ambiguous=True) if found is not None and is_ambiguous else found

    def _look(self, name: str, folders: Sequence[str]) -> ModuleSpec | None:
        for folder in folders:
            if folder not in self.folders:
                self.folders[folder] = file_stamp(folder)
        return PathFinder.find_spec(name, list(folders))


def is_installed(root: str) -> bool:
    """Whether a folder is one of installed packages, which Python finds by itself."""
    return any(part in _INSTALLED for part in Path(root).parts)


def _anywhere(name: str) -> ModuleSpec | None:
    """What an import of the name would find, whatever has been imported by that name already."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if getattr(finder, "is_of_project", False) or find is None:
            continue
        spec: ModuleSpec | None = find(name, None)
        if spec is not None:
            return spec
    return None


def _root(spec: ModuleSpec) -> str:
    """The folder from which a top-level module is imported."""
    if spec.submodule_search_locations:
        return str(Path(next(iter(spec.submodule_search_locations))).parent)
    return str(Path(spec.origin).parent) if spec.origin and spec.has_location else ""


def _read(name: str, spec: ModuleSpec) -> ModuleSource | None:
    folders = tuple(spec.submodule_search_locations or ())
    if spec.origin is None:
        return ModuleSource(name, "", b"", folders) if folders else None
    get_data = getattr(spec.loader, "get_data", None)
    if get_data is None or not spec.origin.endswith(".py"):
        return None
    try:
        stamp = file_stamp(spec.origin)
        return ModuleSource(name, spec.origin, get_data(spec.origin), folders, stamp)
    except OSError as error:
        raise SourceError(f"module '{name}' cannot be read: {error}") from error


def _with_parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]
