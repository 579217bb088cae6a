"""A Python environment with what an executor needs, and neither Stagecoach nor Dagster.

Packages are links into the environment of this process, so it needs no network and no space.
"""

from __future__ import annotations

import re
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from stagecoach.infra.spark.executor_packages import EXECUTOR_PACKAGES

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def make_environment(folder: Path, packages: Iterable[str] = EXECUTOR_PACKAGES) -> Path:
    """Make an environment; return its interpreter.

    Args:
        folder: Where it goes.
        packages: Distributions that it has, with all that these need.
    """
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    target = folder / "lib" / version / "site-packages"
    for found in _with_needed(packages):
        for name in _top_level(found):
            link = target / name
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(name))))
    return folder / "bin" / "python3"


def _with_needed(names: Iterable[str]) -> list[Distribution]:
    """The distributions and those that they need, as far as they are installed here."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # of another platform or another version of Python
        for requirement in found[name].requires or ():
            marker = requirement.partition(";")[2]
            match = _NAME.match(requirement)
            if match and "extra" not in marker:
                waiting.append(match[0].lower())
    return list(found.values())


def _top_level(found: Distribution) -> set[str]:
    """Names right below site-packages that belong to a distribution."""
    parts = {file.parts[0] for file in found.files or ()}
    return {part for part in parts if part not in ("..", "__pycache__", "bin")}
