"""Which files `stagecoach init` writes: a project of its own, or a part of one that is there.

    nothing there                pyproject.toml, workspace.yaml, pipelines/, data/, a CI workflow,
                                 .vscode/ (`editor.py`)
    a Dagster project of `dg`    a component in the folder of its definitions
    another project of Python    pipelines/ and data/

The texts are templates in `templates/`, which the wheel holds.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from stagecoach.infra.errors import ConfigError
from stagecoach.scaffold.editor import editor_files

_TEMPLATES = "stagecoach.scaffold"
# Of the templates of a project, what a project that is there takes over.
_PARTS = ("pipelines", "data")
# Others may have a `$` of their own.
_WITH_VALUES = (".toml", ".yaml", ".md")
# `.gitignore` in the template would hide files of this repository.
_RENAMED = {"gitignore": ".gitignore"}
_COMPONENT_FOLDER = "stagecoach"
_HERE = PurePosixPath()


@dataclass(frozen=True)
class NewFile:
    """A file to write.

    Args:
        path: Where, below the project's folder.
        text: What it holds.
    """

    path: PurePosixPath
    text: str


@dataclass(frozen=True, kw_only=True)
class Scaffold:
    """What becomes of a folder.

    Args:
        files: The files to write; one that is there stays as it is.
        steps: What its user does next, a line each.
    """

    files: tuple[NewFile, ...]
    steps: tuple[str, ...]


def scaffold(folder: Path) -> Scaffold:
    """Return what `stagecoach init` writes into a folder, which need not be there.

    Raises:
        ConfigError: Its `pyproject.toml` cannot be read.
    """
    settings = _pyproject(folder / "pyproject.toml")
    name = _project_name(folder)
    if settings is None:
        return _new_project(name)
    root = settings.get("tool", {}).get("dg", {}).get("project", {}).get("root_module")
    if isinstance(root, str) and root:
        return _component(folder, root)
    return _part_of_project(name)


def _new_project(name: str) -> Scaffold:
    return Scaffold(
        files=(
            *_files("project", name=name),
            *(NewFile(path, text) for path, text in editor_files()),
        ),
        steps=(
            "stagecoach check",
            "stagecoach test",
            "stagecoach query pipelines/queries/revenue_by_region.sql",
            "stagecoach ui",
        ),
    )


def _part_of_project(name: str) -> Scaffold:
    files = [file for file in _files("project", name=name) if file.path.parts[0] in _PARTS]
    return Scaffold(
        files=tuple(files),
        steps=(
            "add stagecoach[ui] to the dependencies in pyproject.toml, .stagecoach/ to .gitignore",
            "merge the definitions into yours: Definitions.merge(defs, pipelines.definitions.defs)",
            "stagecoach check",
            "stagecoach test",
            "stagecoach query pipelines/queries/revenue_by_region.sql",
        ),
    )


def _component(folder: Path, root: str) -> Scaffold:
    """A component beside the definitions that the project has."""
    # Dagster takes a while to import, and only this kind of project needs it.
    from stagecoach.assets.definitions.new_component import component_files

    parts = root.split(".")
    source = PurePosixPath("src") if (folder / "src" / parts[0]).is_dir() else PurePosixPath()
    place = source.joinpath(*parts, "defs", _COMPONENT_FOLDER)
    up = "/".join([".."] * len(place.parts))
    files = (NewFile(place / path, text) for path, text in component_files(up))
    return Scaffold(
        files=tuple(files),
        steps=(
            "add stagecoach to the dependencies in pyproject.toml, .stagecoach/ to .gitignore",
            f"stagecoach tables add PATH --catalog {place}/catalog.yaml",
            f"stagecoach check {place}/queries --catalog {place}/catalog.yaml",
            "dg check defs",
        ),
    )


def _files(template: str, **values: str) -> Iterator[NewFile]:
    """The files of a template, its placeholders filled in."""
    for path, item in _walk(resources.files(_TEMPLATES) / "templates" / template, _HERE):
        text = item.read_text(encoding="utf-8")
        if path.suffix in _WITH_VALUES:
            text = string.Template(text).substitute(values)
        yield NewFile(path.with_name(_RENAMED.get(path.name, path.name)), text)


def _walk(folder: Traversable, place: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _walk(item, place / item.name)
        elif not item.name.endswith(".pyc"):
            yield place / item.name, item


def _pyproject(file: Path) -> dict[str, dict[str, dict[str, dict[str, object]]]] | None:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


def _project_name(folder: Path) -> str:
    """The folder's name as that of a Python distribution."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", folder.resolve().name).strip("-").lower()
    return name or "project"


def write(folder: Path, files: Sequence[NewFile]) -> Iterator[tuple[NewFile, bool]]:
    """Write files; yield each with whether it was written: one that is there stays as it is.

    Raises:
        ConfigError: A file cannot be written.
    """
    for file in files:
        path = folder / file.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as target:
                target.write(file.text)
        except FileExistsError:
            yield file, False
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
        else:
            yield file, True
