"""The mask of new files is told without changing it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stagecoach.infra.host import umask as module
from stagecoach.infra.host.umask import umask


@pytest.fixture
def mask() -> Iterator[int]:
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


@pytest.mark.parametrize("system_tells", [True, False])
def test_threads_see_the_mask_and_leave_it(
    system_tells: bool, mask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not system_tells:
        monkeypatch.setattr(module, "Path", lambda _: Path("/no/such/file"))
    with ThreadPoolExecutor(4) as pool:
        found = {done.result() for done in [pool.submit(umask) for _ in range(400)]}
    assert found == {mask}
    assert os.umask(mask) == mask
