"""Import caches that several threads drop at once."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from stagecoach.infra.host.import_path import dropping_import_caches, forget_missing_modules


def test_threads_drop_the_caches_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # `importlib.invalidate_caches` itself fails here with a KeyError.
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    missing = {f"/no/such/folder/{number}": None for number in range(100_000)}
    sys.path_importer_cache.update(missing)
    with ThreadPoolExecutor(2) as pool:
        for drop in [pool.submit(forget_missing_modules) for _ in range(2)]:
            drop.result()
    assert not missing.keys() & sys.path_importer_cache.keys()


def test_a_cache_that_changes_while_it_is_listed_is_listed_again() -> None:
    # A garbage collection amid the listing lets another thread run, which is rare.
    caches = {"one": None, "two": None}

    def drop() -> int:
        for name in caches:
            if len(caches) > 1:
                del caches[name]
        return len(caches)

    assert dropping_import_caches(drop) == 1


def test_other_errors_are_not_tried_again() -> None:
    calls = []

    def fail() -> None:
        calls.append(1)
        raise RuntimeError("the server is lost")

    with pytest.raises(RuntimeError, match="the server is lost"):
        dropping_import_caches(fail)
    assert len(calls) == 1
