"""Finds the tests of one source file: `python -m tests.covering planner/types.py [PYTEST_ARGS]…`.

A test file covers a module if it is named after it in the folder that mirrors the package, or if it
imports or names it, itself or through a helper in `tests/`. A module that no test file covers so is covered
by the tests of the modules that import it, nearest first. Goldens, TPC-H and the comparisons with
Spark run everything; `make test` is what runs these.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
_NAME = re.compile(r"\bstagecoach(?:\.\w+)+")
PACKAGES = ("planner", "infra", "assets", "stagecoach")


def module_of(path: str) -> str:
    """Return the name under which Python imports a file of the repository.

    Raises:
        ValueError: The file is not in a package of ours.
    """
    relative = Path(path).absolute().relative_to(ROOT)
    if relative.parts[0] not in PACKAGES or relative.suffix != ".py":
        raise ValueError(f"{relative} is not a Python file of {', '.join(PACKAGES)}")
    parts = list(relative.with_suffix("").parts)
    if parts[0] != "stagecoach":
        parts.insert(0, "stagecoach")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports_of_tests() -> dict[Path, set[str]]:
    """Return what each test file imports from our packages, helpers of tests included."""
    direct = {path: _imports(path) for path in sorted((ROOT / "tests").rglob("*.py"))}
    helpers = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): names
        for path, names in direct.items()
    }
    found: dict[Path, set[str]] = {}
    for path in direct:
        if not path.name.startswith("test_"):
            continue
        names, todo = set(), [direct[path]]
        while todo:
            for name in todo.pop() - names:
                names.add(name)
                if name in helpers:
                    todo.append(helpers[name])
        found[path] = {name for name in names if name.startswith("stagecoach")}
    return found


def covering(module: str) -> list[Path]:
    """Return the test files that cover a module, sorted."""
    mirrored = module.removeprefix("stagecoach.") if module.count(".") > 1 else module
    folder, _, name = mirrored.replace(".", "/").rpartition("/")
    found = set((ROOT / "tests" / folder).glob(f"test_{name}*.py"))
    tests = imports_of_tests()
    seen, near = {module}, {module}
    while near and not found:
        found = {path for path, names in tests.items() if names & near}
        importers = set().union(*(_users(m) for m in near))
        near = importers - seen
        seen |= near
    found |= {path for path, names in tests.items() if module in names}
    return sorted(found)


def modules() -> Iterator[Path]:
    """Yield the modules of our packages; what `init` copies into a project is none of them."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if "templates" not in path.parts:
                yield path


def _users(module: str) -> set[str]:
    """Modules of ours that import a module, or name it as that of a program."""
    named = {user for user, names in _named().items() if module in names}
    return _graph().find_modules_that_directly_import(module) | named - {module}


@functools.cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("stagecoach", cache_dir=None)


@functools.cache
def _named() -> dict[str, set[str]]:
    """The modules that the text of each module of ours names."""
    found = {}
    for path in modules():
        text, module = path.read_text(encoding="utf-8"), module_of(str(path))
        folder = module.rpartition(".")[0]
        # A program is started by its name, or as the file beside the one that starts it.
        beside = {f"{folder}.{name}" for name in re.findall(r'"(\w+)\.py"', text)}
        # Commands are imported by their names when they are asked for.
        by_name = {
            f"{package}.{name}"
            for package in re.findall(r'import_module\(f"([\w.]+)\.\{', text)
            for name in re.findall(r'"(\w+)"', text)
        }
        found[module] = set(_NAME.findall(text)) | beside | by_name
    return found


def _imports(path: Path) -> set[str]:
    """Modules, and names that may be modules, which a file imports from our packages and tests."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(_NAME.findall(node.value))  # `-m stagecoach.x`, in a command
    return {name for name in found if name.split(".")[0] in ("stagecoach", "tests")}


def main(arguments: list[str]) -> int:
    """Run the tests that cover the file named first; the other arguments are pytest's."""
    if not arguments or not arguments[0]:
        print("usage: make test-for FILE=planner/types.py", file=sys.stderr)
        return 2
    try:
        files = covering(module_of(arguments[0]))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if not files:
        print(f"no test covers {arguments[0]}", file=sys.stderr)
        return 1
    names = [str(path.relative_to(ROOT)) for path in files]
    print(f"{len(names)} test files: {' '.join(names)}", flush=True)
    command = [sys.executable, "-m", "pytest", *names, *arguments[1:]]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
