"""Staging of lakes, exhaustively: the code that formats share, every interleaving, every crash.

No reader of the lake ever sees a result that has not passed its checks, none loses a file, and no
result is there twice. The lake is one in memory (`memory_lake`); all else is real.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from greenlet import getcurrent

from stagecoach.infra.formats import version_log
from stagecoach.infra.formats.lake_tables import (
    leftovers,
    staged_log,
    staging_writer,
    write_plan,
    writer,
)
from stagecoach.infra.formats.lake_tables.leftovers import find_leftovers
from stagecoach.infra.formats.publishing import PublishError, StagedGoneError
from stagecoach.infra.formats.stored import NotStagedError
from stagecoach.infra.storage import layout
from tests.infra.formats.lake_tables.memory_lake import (
    COLUMNS,
    Below,
    MemoryWriter,
    opened,
    read_lake,
    target_of,
    write_first,
    write_lake,
)

sys.path.insert(0, str(Path(__file__).parents[2] / "shuffle"))
from interleavings import NOW, Objects, Outcome, Search, World, aged

OLD, GOOD, BAD, LATE = "old", "good", "bad", "late"
DAYS = timedelta(days=30)
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_log, "_WAIT_SECONDS", 0.0)
    monkeypatch.setattr(writer, "_FIRST_WAIT_SECONDS", 0.0)
    # The log itself is searched with published tables; here its commits are one step.
    log = version_log.VersionLog
    monkeypatch.setattr(log, "_read_hint", lambda _: None)
    monkeypatch.setattr(log, "_newest_from", lambda log, number: log._read(number))
    monkeypatch.setattr(log, "_write", put)
    # A history is repeated with the same tokens and times; actors have names of their own.
    for module in (staged_log, staging_writer):
        monkeypatch.setattr(module, "utc_now", lambda: datetime.now(UTC).isoformat()[:10])
    for module in (staged_log, writer):
        monkeypatch.setattr(module, "new_token", token)
    for module in (leftovers, write_plan):
        monkeypatch.setattr(module, "lake_store", Below)


def put(log: Any, version: Any) -> bool:
    key = layout.log_version(log.folder, version.number)
    return bool(log.store.put_if_absent(key, version.to_json()))


def token() -> str:
    """The next token of an actor: the same in each history."""
    own = vars(getcurrent())
    own["count"] = own.get("count", 0) + 1
    return f"20260101T000000-{own.get('actor', 'nobody')}-{own['count']}"


def run_of(
    name: str, *, passes: bool, mode: str = "replace", looks: bool = False
) -> Callable[[World], str]:
    """A run as `publish.stage` and the step do it: write, stage, check, publish.

    Args:
        name: Its rows.
        passes: Whether these pass their checks.
        mode: Of the output.
        looks: Whether it looks for what another run of it has done, as every run does. That is left
            out where it can find nothing, for it multiplies the number of states.
    """

    def run(store: World) -> str:
        made = MemoryWriter(store, target_of(mode), COLUMNS, fingerprint=name, run_id=name)
        if looks and made.find_published() is not None:
            return "there"
        if not (looks and made.find_staged()):
            path = f"{made.plan.location}/{name}.parquet"
            store.write_bytes(path, name.encode())
            made.add([{"path": path, "num_rows": 1, "num_bytes": 10, "partition_key": None}])
            if made.stage_commit() is None:
                return "there"
        if not passes:
            return "failed"
        try:
            made.publish()
        except StagedGoneError:
            return "gone"
        return "published"

    return run


def by_hand(action: str, wanted: str) -> Callable[[World], str]:
    """`stagecoach tables publish` or `discard`, of what somebody has looked at."""

    def act(store: World) -> str:
        table = opened(store)
        staged = [item for item in table.staged() if item.fingerprint == wanted]
        if not staged:
            return "nothing"
        try:
            getattr(table, f"{action}_staged")(staged[0].id)
        except NotStagedError:
            return "gone"
        except PublishError as error:
            return "gone" if isinstance(error, StagedGoneError) else "refused"
        return action

    return act


def gc(store: World) -> None:
    """The part of garbage collection that is about what commits have left."""
    for item in find_leftovers(opened(store), NOW - timedelta(hours=1)):
        item.remove()


def search_of(actors: dict[str, Callable[[World], Any]], **options: Any) -> Search:
    def named(name: str, act: Callable[[World], Any]) -> Callable[[World], Any]:
        def acting(store: World) -> Any:
            vars(getcurrent())["actor"] = name
            return act(store)

        return acting

    return Search(actors={name: named(name, act) for name, act in actors.items()}, **options)


def files_in(objects: Objects) -> list[str]:
    """The files of the newest version."""
    found = read_lake(World(objects, conditional=True))
    return list(found[0]["files"]) if found else []


def visible(objects: Objects) -> set[str]:
    return {path.rsplit("/", 1)[1].removesuffix(".parquet") for path in files_in(objects)}


def sound(*never: str) -> Callable[[Objects], None]:
    """The invariant of every state: nothing bad, nothing twice, and each named file is there."""

    def look(objects: Objects) -> None:
        files = files_in(objects)
        names = [path.rsplit("/", 1)[1].removesuffix(".parquet") for path in files]
        assert not set(names) & set(never), f"readers see {names}"
        assert len(set(names)) == len(names), f"rows are there twice: {names}"
        missing = [path for path in files if path not in objects]
        assert not missing, f"the lake has lost {missing}"
        for commit in opened(World(objects, conditional=True)).staged_log.commits():
            key = f"memory/t/pending/{commit.token}.json"
            assert key in objects or commit.claims, f"the record of {commit.id} is gone"
            if key in objects and not commit.claims:
                (file,) = json.loads(objects[key][0])["commit"]["files"]
                assert file["path"] in objects, f"the file of {commit.id} is gone"

    return look


def objects_of(*names: str, staged: str = "", mode: str = "replace") -> Objects:
    """A table in which these were published long ago, and where another result waits since."""
    world = World({}, conditional=True)
    write_first(world)
    for name in names:
        run_of(name, passes=True)(world)
    if staged:
        run_of(staged, passes=False, mode=mode)(world)
    return aged(world.objects, DAYS)


def explained(outcome: Outcome) -> str:
    return "\n".join([*outcome.history, repr(outcome.results), repr(visible(outcome.objects))])


def test_a_bad_version_is_never_seen() -> None:
    """A run whose checks fail beside one whose checks pass, which may crash at any moment."""
    search = search_of(
        {"bad": run_of(BAD, passes=False), "good": run_of(GOOD, passes=True)},
        objects=objects_of(OLD),
        may_crash=frozenset(("good",)),
        look=sound(BAD),
    )
    for outcome in search.outcomes():
        seen = visible(outcome.objects)
        if "good" in outcome.crashed:
            assert seen in ({OLD}, {GOOD}), explained(outcome)
        else:
            assert (outcome.results["good"], seen) == ("published", {GOOD}), explained(outcome)
    assert search.num_states > 500


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_publishing_and_discarding_by_hand_decide_once(mode: str) -> None:
    """One publishes what another discards; each may crash at any moment."""
    search = search_of(
        {"publish": by_hand("publish", BAD), "discard": by_hand("discard", BAD)},
        objects=objects_of(OLD, staged=BAD, mode=mode),
        may_crash=frozenset(("publish", "discard")),
        look=sound(),
    )
    both = {BAD} if mode == "replace" else {OLD, BAD}
    seen = set()
    for outcome in search.outcomes():
        shown, results = visible(outcome.objects), outcome.results
        assert shown in (both, {OLD}), explained(outcome)
        if results.get("publish") == "publish":
            assert shown == both, explained(outcome)
        if results.get("publish") in ("gone", "nothing"):
            assert shown == {OLD}, explained(outcome)
        if results.get("discard") == "discard" and "publish" in results:
            # It may have come too late, after the publication.
            assert shown == ({OLD} if results["publish"] != "publish" else both)
        seen.add(frozenset(shown))
    assert seen == {frozenset(both), frozenset({OLD})}


@pytest.mark.parametrize("action", ["publish", "discard"])
def test_gc_beside_a_decision_by_hand(action: str) -> None:
    search = search_of(
        {"user": by_hand(action, BAD), "gc": gc},
        objects=objects_of(OLD, staged=BAD, mode="append"),
        may_crash=frozenset(("user",)),
        look=sound(),
    )
    for outcome in search.outcomes():
        assert outcome.results["gc"] is None, explained(outcome)
        expected = {OLD, BAD} if action == "publish" else {OLD}
        assert "user" in outcome.crashed or visible(outcome.objects) == expected, explained(outcome)


@pytest.mark.parametrize(
    "other", ["gc", "discard", pytest.param("publish", marks=pytest.mark.slow)]
)
def test_a_run_that_is_repeated_goes_on_with_what_it_has_staged(other: str) -> None:
    """After a crash, long ago; beside gc, and beside somebody who decides by hand."""
    act = gc if other == "gc" else by_hand(other, GOOD)
    search = search_of(
        {"retry": run_of(GOOD, passes=True, mode="append", looks=True), other: act},
        objects=objects_of(OLD, staged=GOOD, mode="append"),
        # Two who publish have many states; one who dies then is repeated below.
        may_crash=frozenset(() if other == "publish" else ("retry",)),
        look=sound(),
    )
    for outcome in search.outcomes():
        shown, result = visible(outcome.objects), outcome.results.get("retry")
        if result in ("published", "there"):
            assert shown == {OLD, GOOD}, explained(outcome)
        elif result is not None:
            assert (result, other, shown) == ("gone", "discard", {OLD}), explained(outcome)


def test_a_run_that_died_anywhere_is_repeated() -> None:
    """Nothing is lost and nothing doubled, and gc removes what it has left."""
    search = search_of(
        {"run": run_of(GOOD, passes=True, mode="append", looks=True)},
        objects=objects_of(OLD),
        may_crash=frozenset(("run",)),
        look=sound(),
    )
    crashes = 0
    for outcome in search.outcomes():
        world = World(aged(outcome.objects, DAYS), conditional=True)
        assert run_of(GOOD, passes=True, mode="append", looks=True)(world) in ("published", "there")
        assert visible(world.objects) == {OLD, GOOD}, explained(outcome)
        sound()(world.objects)
        assert opened(world).staged() == [], explained(outcome)
        world = World(aged(world.objects, DAYS), conditional=True)
        gc(world)
        sound()(world.objects)
        left = {key for key in world.objects if key.startswith(("data/", "memory/t/pending/"))}
        assert left == set(files_in(world.objects)), explained(outcome)
        crashes += bool(outcome.crashed)
    assert crashes > 20


def test_the_base_moves_while_the_checks_run() -> None:
    """An append that passes beside a commit of another tool, which knows nothing of staging."""

    def plain(store: World) -> None:
        store.write_bytes(f"data/{LATE}.parquet", b"")
        while True:
            known = read_lake(store)
            path = f"data/{LATE}.parquet"
            files = [*known[0]["files"], path]
            if write_lake(store, known, {"ours": {}, "added": [path], "files": files}):
                return

    search = search_of(
        {"good": run_of(GOOD, passes=True, mode="append"), "late": plain},
        objects=objects_of(OLD),
        look=sound(BAD),
    )
    for outcome in search.outcomes():
        assert visible(outcome.objects) == {OLD, GOOD, LATE}, explained(outcome)
