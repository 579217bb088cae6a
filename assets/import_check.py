"""Whether Python finds our own packages: in, their names; out, an error if another one is first.

Our packages have common names. A project with an `assets` package of its own, first on `sys.path`,
would else fail in the middle of an import with a message about something else. To import this
module is to check the packages below `assets`. It stands alone, so that it works where `assets` is
not ours (see `stagecoach.import_check`).
"""

import importlib.util
from collections.abc import Iterable
from pathlib import Path


def check_imports(names: Iterable[str]) -> None:
    """Refuse to go on where another package hides one of ours.

    Args:
        names: Our packages, all in one folder.

    Raises:
        ImportError: Another one is found first; the message says where, and what to do.
    """
    home = Path(__file__).resolve().parents[1]
    for name in names:
        found = _folder(name)
        if found is not None and found.parent != home:
            raise ImportError(
                f"Stagecoach needs its package '{name}' of {home}, but Python finds another one "
                f"first: {found}. Rename that package or make it part of a package of your own "
                f"(such as my_project.{name}), or take {found.parent} from the front of "
                "PYTHONPATH or sys.path",
                name=name,
                path=str(found),
            )


def _folder(name: str) -> Path | None:
    """The folder of the package that an import of the name would get."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a spec, such as a test's stand-in
        return None
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))).resolve()
    return Path(spec.origin or "").resolve()


check_imports(("planner", "infra"))
