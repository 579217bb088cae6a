"""Import caches that several threads drop at once."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from stagecoach.infra.host.import_path import forget_missing_modules

if TYPE_CHECKING:
    import pytest


def test_threads_drop_the_caches_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # `importlib.invalidate_caches` itself fails here with a KeyError.
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    missing = {f"/no/such/folder/{number}": None for number in range(100_000)}
    sys.path_importer_cache.update(missing)
    with ThreadPoolExecutor(2) as pool:
        for drop in [pool.submit(forget_missing_modules) for _ in range(2)]:
            drop.result()
    assert not missing.keys() & sys.path_importer_cache.keys()
