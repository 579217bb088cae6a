"""Outputs that are lost while a run goes on: computed again in the same run, or named."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.local_runs import QUERIES, LocalRuns, tasks_here, write_tables
from stagecoach.infra.config.settings import EngineSettings, load_settings
from stagecoach.infra.errors import ShuffleReadError
from stagecoach.infra.runtime.records.pointers import read_pointer
from stagecoach.infra.runtime.stages import recovery
from stagecoach.infra.runtime.stages import run_stage as stage_module
from stagecoach.infra.runtime.stages.attempt import Attempt
from stagecoach.infra.runtime.stages.run import Run, StageResult
from stagecoach.infra.runtime.stages.run_stage import read_result, run_stage
from stagecoach.infra.shuffle.commit import is_lost, load_manifest
from stagecoach.infra.shuffle.manifest import Manifest, ManifestError
from stagecoach.infra.storage import layout
from tests.contexts import small_settings


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture
def runs(tables: Path, tmp_path: Path) -> LocalRuns:
    settings = small_settings(tmp_path)
    return LocalRuns(tables, settings)


def run(context: Run, *stages: int) -> list[StageResult]:
    with tasks_here():
        return [run_stage(i, context) for i in stages]


def path_of(context: Run, manifest: Manifest, name: str) -> Path:
    return Path(context.store.uri(layout.shuffle_file(manifest.fingerprint, name)))


def flip(path: Path, position: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if position is None else position] ^= 0x20
    path.write_bytes(content)


def flip_index(path: Path, manifest: Manifest) -> None:
    """A bit of the partitions' places, and one of those of sorted blocks: a reader needs either."""
    flip(path, manifest.index_slices[0].offset + 80)
    if manifest.blocks is not None:
        flip(path, manifest.blocks.offset + manifest.blocks.length // 2)


def swap(context: Run, manifest: Manifest) -> None:
    """Two files of one stage in each other's place."""
    first, second = (path_of(context, manifest, file.name) for file in manifest.files[:2])
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)


def elsewhere(context: Run) -> Run:
    """The run as another process sees it, which knows only what is in storage."""
    return dataclasses.replace(context)


Damage = Callable[[Run, Manifest], object]
DAMAGE: dict[str, Damage] = {
    "file missing": lambda c, m: path_of(c, m, m.files[0].name).unlink(),
    "file short": lambda c, m: path_of(c, m, m.files[0].name).write_bytes(
        path_of(c, m, m.files[0].name).read_bytes()[:-9]
    ),
    "file flipped": lambda c, m: flip(path_of(c, m, m.files[0].name)),
    "files swapped": swap,
    "index missing": lambda c, m: path_of(c, m, m.index_name).unlink(),
    "index flipped": lambda c, m: flip_index(path_of(c, m, m.index_name), m),
    "manifest missing": lambda c, m: path_of(c, m, "manifest.json").unlink(),
    "manifest short": lambda c, m: path_of(c, m, "manifest.json").write_bytes(m.to_json()[:-20]),
    "manifest flipped": lambda c, m: flip(path_of(c, m, "manifest.json")),
    "all gone": lambda c, m: [p.unlink() for p in path_of(c, m, "manifest.json").parent.iterdir()],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_lost_is_computed_again_in_the_same_run(damage: str, runs: LocalRuns) -> None:
    graph = runs.plan("shared")
    expected, _ = runs.run(graph, fresh=True)
    context = runs.context(graph, fresh=True)
    first, *_ = run(context, 0)
    assert first.manifest is not None
    DAMAGE[damage](context, first.manifest)
    results = run(elsewhere(context), 1, 2, 3)
    assert len(results[0].recovered) == 1
    assert "shared/stage_0 was lost" in results[0].recovered[0]
    assert not results[1].recovered
    # A loss three stages deep: the head needs stage 3, which needs stage 1, which needs stage 0.
    for i in (0, 1, 3):
        manifest = load_manifest(runs.store, context.fingerprints[i])
        assert manifest is not None
        DAMAGE[damage](context, manifest)
    (head,) = run(elsewhere(context), 4)
    assert "shared/stage_3 was lost" in head.recovered[-1]
    assert "shared/stage_0 was lost" in "\n".join(head.recovered)
    with tasks_here():
        assert read_result(context).equals(expected)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_another_query_has_committed_is_computed_again(damage: str, runs: LocalRuns) -> None:
    """An equal stage of two queries has one commit, which each calls by its own stage's name."""
    other = runs.context(runs.plan("totals"))
    run(other, 0)
    graph = runs.plan("sums", sql=QUERIES["totals"])
    expected, _ = runs.run(graph, fresh=True)
    context = runs.context(graph)
    (first,) = run(context, 0)
    assert first.reused
    assert first.manifest is not None
    DAMAGE[damage](context, first.manifest)
    second, *_ = run(elsewhere(context), *range(1, len(graph.stages)))
    assert len(second.recovered) == 1
    assert "sums/stage_0 was lost" in second.recovered[0]
    with tasks_here():
        assert read_result(context).equals(expected)


def test_a_lost_output_has_the_name_of_the_query_that_needs_it(runs: LocalRuns) -> None:
    run(runs.context(runs.plan("totals")), 0)
    strict = dataclasses.replace(
        runs.context(runs.plan("sums", sql=QUERIES["totals"])), recover=False
    )
    (first,) = run(strict, 0)
    assert first.manifest is not None
    DAMAGE["index flipped"](strict, first.manifest)
    with pytest.raises(ManifestError, match=r"lost output of sums/stage_0.*run sums/stage_0 again"):
        run(elsewhere(strict), 1)
    assert is_lost(runs.store, first.manifest)


@pytest.mark.parametrize("damage", ["index missing", "manifest flipped", "manifest missing"])
def test_a_process_needs_nothing_back_that_it_wrote_but_map_files(
    damage: str, runs: LocalRuns
) -> None:
    graph = runs.plan("shared")
    expected, _ = runs.run(graph, fresh=True)
    context = runs.context(graph, fresh=True)
    for stage in graph.stages[:-1]:
        (result,) = run(context, stage.stage_id)
        assert result.manifest is not None
        assert not result.recovered
        DAMAGE[damage](context, result.manifest)
    (head,) = run(context, 4)
    assert not head.recovered
    with tasks_here():
        assert read_result(context).equals(expected)


def test_damaged_places_of_sorted_blocks_are_a_lost_output(runs: LocalRuns) -> None:
    """All partitions of the stage can be read; what is damaged is where its sorted blocks lie."""
    graph = runs.plan("shared")
    expected, _ = runs.run(graph, fresh=True)
    context = runs.context(graph, fresh=True)
    run(context, 0, 1, 2, 3)
    manifest = load_manifest(runs.store, context.fingerprints[3])
    assert manifest is not None
    assert manifest.blocks is not None
    flip(
        path_of(context, manifest, manifest.index_name),
        manifest.blocks.offset + manifest.blocks.length // 2,
    )
    (head,) = run(elsewhere(context), 4)
    assert len(head.recovered) == 1
    assert "shared/stage_3 was lost" in head.recovered[0]
    assert "sorted rows is damaged" in head.recovered[0]
    with tasks_here():
        assert read_result(context).equals(expected)


@pytest.mark.parametrize("damage", ["file missing", "file flipped", "manifest missing"])
def test_without_recovery_the_error_names_what_to_do(damage: str, runs: LocalRuns) -> None:
    graph = runs.plan("totals")
    context = runs.context(graph, recover=False)
    (first,) = run(context, 0)
    assert first.manifest is not None
    DAMAGE[damage](context, first.manifest)
    with pytest.raises(ShuffleReadError, match=r"lost output of totals/stage_0") as caught:
        run(elsewhere(context), 1)
    name = "manifest.json" if "manifest" in damage else first.manifest.files[0].name
    assert name in str(caught.value)
    assert "run totals/stage_0 again" in str(caught.value)
    assert not caught.value.retryable
    # What was found is marked, so the next run computes that stage, and only that.
    again = dataclasses.replace(context, run_id="again")
    results = run(again, *range(len(graph.stages)))
    assert [r.reused for r in results] == [False] * len(results)
    with tasks_here():
        assert read_result(again).num_rows == 7


def test_settings_and_runs_switch_it() -> None:
    assert EngineSettings().recover
    assert not load_settings(environment={"STAGECOACH_RECOVER": "false"}).recover


def test_what_was_never_computed_is_not_lost(runs: LocalRuns) -> None:
    graph = runs.plan("totals")
    context = runs.context(graph)
    with pytest.raises(ManifestError, match=r"not found; run totals/stage_0 again"):
        run(context, 1)
    assert load_manifest(runs.store, context.fingerprints[0]) is None


def test_recovery_gives_up(
    runs: LocalRuns, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    graph = runs.plan("totals")
    context = runs.context(graph)
    run(context, 0)
    computed = 0
    real = stage_module.commit_manifest

    def commit(*args: Any, **options: Any) -> Manifest:
        nonlocal computed
        manifest = real(*args, **options)
        computed += 1
        path_of(context, manifest, manifest.files[0].name).unlink()  # a disk that keeps nothing
        return manifest

    (path,) = Path(runs.store.uri("shuffle")).glob("*/*/00000-*.arrow")
    path.unlink()
    monkeypatch.setattr(stage_module, "commit_manifest", commit)
    with pytest.raises(ShuffleReadError, match="run totals/stage_0 again"):
        run(context, 1)
    assert computed == recovery.MAX_ROUNDS
    assert "given up after 3 rounds" in caplog.text


def test_two_steps_that_find_the_same_loss_compute_it_once(runs: LocalRuns) -> None:
    graph = runs.plan("shared")
    expected, _ = runs.run(graph, fresh=True)
    context = runs.context(graph, fresh=True)
    (first,) = run(context, 0)
    assert first.manifest is not None
    DAMAGE["file missing"](context, first.manifest)
    started: list[tuple[int, int]] = []
    with tasks_here(lambda spec: started.append((spec.stage_id, spec.task_index))):
        # Contexts of their own, as in processes of their own.
        threads = [
            threading.Thread(target=run_stage, args=(i, dataclasses.replace(context)))
            for i in (1, 2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert started.count((0, 0)) == 1
        for i in (3, 4):
            run_stage(i, context)
        assert read_result(context).equals(expected)


def test_what_came_from_another_output_is_not_joined(runs: LocalRuns) -> None:
    """Stage 2 has read an output of stage 0 that is computed again, otherwise, for stage 1."""
    graph = runs.plan("shared")
    expected, _ = runs.run(graph, fresh=True)
    context = runs.context(graph, fresh=True)
    first, second = run(context, 0, 2)
    assert first.manifest is not None
    assert second.manifest is not None
    DAMAGE["file missing"](context, first.manifest)
    # Other bytes for the same rows: another codec stands for ties that fall the other way.
    other = dataclasses.replace(
        context, settings=dataclasses.replace(context.settings, codec="none")
    )
    (result,) = run(other, 1)
    assert "stage_0 was lost" in result.recovered[0]
    again = load_manifest(runs.store, context.fingerprints[0])
    assert again is not None
    assert again.content_hash != first.manifest.content_hash
    (joined,) = run(other, 3)
    assert "stage_2 was lost" in joined.recovered[0]
    assert "computed from another output of shared/stage_0" in joined.recovered[0] or is_lost(
        runs.store, second.manifest
    )
    pointer = read_pointer(runs.store, context.root_run_id, 2)
    assert pointer is not None
    assert pointer.ancestry == {context.fingerprints[0]: again.content_hash}
    run(other, 4)
    assert read_result(other).equals(expected)


def test_the_same_rows_are_the_same_content(runs: LocalRuns) -> None:
    """What is computed again, by another attempt, does not outdate what comes from it."""
    graph = runs.plan("shared")
    context = runs.context(graph)
    everything = run(context, *range(len(graph.stages)))
    first = everything[0].manifest
    assert first is not None
    for damage in ("file missing", "manifest short"):
        DAMAGE[damage](context, first)
        again = run(runs.context(graph), *range(len(graph.stages)))
        manifest = again[0].manifest
        assert manifest is not None
        assert manifest.files[0].attempt != first.files[0].attempt
        assert manifest.content_hash == first.content_hash
        assert [result.reused for result in again] == [False, *(True for _ in again[1:])]
        first = manifest


def test_what_came_from_another_output_is_not_used_again(runs: LocalRuns) -> None:
    """By a later run that recovers nothing: it computes all that comes from the other output."""
    graph = runs.plan("shared")
    expected, _ = runs.run(graph, fresh=True)
    context = runs.context(graph)
    everything = run(context, *range(len(graph.stages)))
    assert everything[0].manifest is not None
    DAMAGE["file missing"](context, everything[0].manifest)
    strict = dataclasses.replace(
        runs.context(graph),
        settings=dataclasses.replace(context.settings, recover=False, codec="none"),
    )
    again = run(strict, *range(len(graph.stages)))
    assert not any(result.reused for result in again)
    assert not any(result.recovered for result in again)
    with tasks_here():
        assert read_result(strict).equals(expected)


def test_a_run_that_is_out_of_date_spoils_no_newer_output(runs: LocalRuns) -> None:
    """Its own input was replaced by another output, of which a newer run has computed the next."""
    graph = runs.plan("shared")
    context = runs.context(graph)
    (first,) = run(context, 0)
    assert first.manifest is not None
    DAMAGE["file missing"](context, first.manifest)
    newer = dataclasses.replace(
        runs.context(graph),
        settings=dataclasses.replace(context.settings, codec="none"),
    )
    _, second = run(newer, 0, 1)
    assert second.manifest is not None
    strict = dataclasses.replace(
        context, settings=dataclasses.replace(context.settings, recover=False)
    )
    with pytest.raises(ManifestError, match=r"shared/stage_0.*replaced by another commit"):
        run(strict, 1)
    assert not is_lost(runs.store, second.manifest)


def test_damage_that_passes_costs_a_second_try(
    runs: LocalRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = runs.plan("totals")
    context = runs.context(graph)
    (first,) = run(context, 0)
    real, calls = stage_module.run_in_tasks, []

    def flaky(attempt: Attempt) -> object:
        calls.append(1)
        if len(calls) == 1:
            raise ShuffleReadError("totals/stage_0", 0, 1, "somewhere", "corrupt")
        return real(attempt)

    monkeypatch.setattr(stage_module, "run_in_tasks", flaky)
    (second,) = run(context, 1)
    assert second.recovered == ("somewhere: corrupt; that passed",)
    assert first.manifest is not None
    assert not is_lost(runs.store, first.manifest)


def test_a_damaged_pointer_counts_as_none(runs: LocalRuns) -> None:
    graph = runs.plan("totals")
    context = runs.context(graph)
    run(context, 0)
    runs.store.write_bytes(layout.run_stage(context.root_run_id, "stage_0"), b'{"expected": ')
    run(context, *range(1, len(graph.stages)))
    with tasks_here():
        assert read_result(context).num_rows == 7
