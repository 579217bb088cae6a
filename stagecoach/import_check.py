"""Whether Python finds our own packages; to import this module is to check it.

See `assets.import_check`, which is loaded by its place: the name `assets` may be another package's.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path


def _check() -> None:
    path = Path(__file__).resolve().parents[1] / "assets" / "import_check.py"
    spec = importlib.util.spec_from_file_location("stagecoach_import_check", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"{path} is missing; install Stagecoach again")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.check_imports(("assets",))


_check()
