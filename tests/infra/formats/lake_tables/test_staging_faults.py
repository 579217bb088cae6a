"""Staging for lakes under faults: killed at each step, nothing is lost and nothing is doubled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stagecoach.infra.formats.delta import writer as delta_writer
from stagecoach.infra.formats.iceberg import writer as iceberg_writer
from stagecoach.infra.formats.lake_tables import leftovers
from stagecoach.infra.formats.lake_tables.staged_log import StagedLog
from stagecoach.infra.publishing.publish import Staged
from tests.infra.formats.lake_tables.lakes import (
    FORMATS,
    AnyLake,
    make_lake,
    rows,
    target_of,
)


class KilledError(BaseException):
    """The process ends here: nothing below may catch it."""


def killed(*args: Any, **kwargs: Any) -> Any:
    raise KilledError


def after(call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        raise KilledError

    return wrapped


STEPS: dict[str, tuple[Any, str, bool]] = {
    "before the record": (leftovers, "hold", False),
    "after the record": (leftovers, "hold", True),
    "after it is staged": (StagedLog, "stage", True),
    "after the claim": (StagedLog, "claim", True),
    "before the commit": (None, "commit", False),
    "after the commit": (None, "commit", True),
    "before it is noted": (StagedLog, "published", False),
    "after it is noted": (StagedLog, "published", True),
    "before the record goes": (leftovers, "end", False),
}
WRITERS: dict[str, ModuleType] = {"iceberg": iceberg_writer, "delta": delta_writer}
STAGED = ("after it is staged", "after the claim", "before the commit")
MERGED = ("after the record", *STAGED, "after the commit")
CASES = [("append", step) for step in STEPS] + [("merge", step) for step in MERGED]


def run(lake: AnyLake, mode: str, *keys: int) -> None:
    """What a step that audits does."""
    outcome = lake.stage(rows(*keys), **target_of(mode, *keys))
    if isinstance(outcome, Staged):
        outcome.publish()


def dies(lake: AnyLake, mode: str, step: str, *keys: int) -> None:
    place, name, is_after = STEPS[step]
    place = place or WRITERS[lake.format]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(place, name, after(getattr(place, name)) if is_after else killed)
        run(lake, mode, *keys)


@pytest.mark.parametrize(("mode", "step"), CASES)
@pytest.mark.parametrize("name", FORMATS)
def test_a_run_that_dies_is_repeated_or_published_by_hand(
    tmp_path: Path, name: str, mode: str, step: str
) -> None:
    lake = make_lake(name, tmp_path)
    lake.publish_keys(mode, 1)
    dies(lake, mode, step, 2, 3)
    assert lake.keys() in ([1], [1, 2, 3])
    run(lake, mode, 2, 3)
    assert lake.keys() == [1, 2, 3]
    dies(lake, mode, step, 4)
    waiting = lake.stored.staged()
    assert len(waiting) == (step in STAGED)
    for item in waiting:
        lake.stored.publish_staged(item.id)
        assert lake.keys() == [1, 2, 3, 4]
    run(lake, mode, 4)
    assert lake.keys() == [1, 2, 3, 4]
    lake.collect()
    assert (lake.stored.staged(), lake.pending()) == ([], [])
    assert lake.data_files() == lake.named_files()
    assert lake.keys() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_run_has_left_waits_or_is_collected(tmp_path: Path, name: str) -> None:
    """Nobody repeats it."""
    lake = make_lake(name, tmp_path)
    lake.publish_keys("append", 1)
    dies(lake, "append", "after the record", 2)
    dies(lake, "append", "after it is staged", 3)
    dies(lake, "append", "after the commit", 4)
    dies(lake, "append", "after it is noted", 5)
    lake.collect()
    (waiting,) = lake.stored.staged()
    assert lake.keys() == [1, 4, 5]
    assert len(lake.data_files()) == 4
    assert len(lake.pending()) == 2  # the run that has died after its commit may be repeated
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(StagedLog, "discard", after(StagedLog.discard))
        lake.stored.discard_staged(waiting.id)
    run(lake, "append", 4)
    lake.collect()
    assert (lake.keys(), lake.data_files()) == ([1, 4, 5], lake.named_files())
    assert (lake.stored.staged(), lake.pending()) == ([], [])
