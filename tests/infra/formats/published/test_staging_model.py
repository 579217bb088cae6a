"""Staging, exhaustively: real code, every interleaving, every crash.

No reader ever sees a version that has not passed its checks, and none loses a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from greenlet import getcurrent

from stagecoach.infra.formats import version_log
from stagecoach.infra.formats.capabilities import ExpiryRule
from stagecoach.infra.formats.published import log, paths
from stagecoach.infra.formats.published.changes import TableChange
from stagecoach.infra.formats.published.expiry import find_expired
from stagecoach.infra.formats.published.log import read_current
from stagecoach.infra.formats.published.version import TableFile, TableVersion
from stagecoach.infra.formats.published.writer import PublishedWriter
from stagecoach.infra.formats.publishing import PublishError, PublishTarget, StagedGoneError
from stagecoach.planner.types import INT, Field

sys.path.insert(0, str(Path(__file__).parents[2] / "shuffle"))
from interleavings import NOW, Objects, Outcome, Search, World, aged

COLUMNS = (Field("a", INT),)
OLD, GOOD, BAD, LATE = "old", "good", "bad", "late"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_log, "_WAIT_SECONDS", 0.0)
    # Hints cost requests and decide nothing; test_log has them.
    monkeypatch.setattr(version_log.VersionLog, "repair_hint", lambda *_: None)
    monkeypatch.setattr(version_log.VersionLog, "_read_hint", lambda _: None)
    # A history is repeated with the same tokens and times; actors have names of their own.
    for place in ("writer", "log"):
        module = f"stagecoach.infra.formats.published.{place}"
        monkeypatch.setattr(f"{module}.utc_now", lambda: "2026-01-01T00:00:00Z")
        monkeypatch.setattr(f"{module}.new_token", token)


def token() -> str:
    """The next token of an actor: the same in each history."""
    own = vars(getcurrent())
    own["count"] = own.get("count", 0) + 1
    return f"{own.get('actor', 'nobody')}-{own['count']}"


def acting(name: str, act: Callable[[World], Any]) -> Callable[[World], Any]:
    """An actor whose tokens are its own."""

    def named(store: World) -> Any:
        vars(getcurrent())["actor"] = name
        return act(store)

    return named


def file_of(name: str) -> TableFile:
    return TableFile(
        # Every writer has names of its own for its files.
        path=paths.table_file_path((), f"{name}-{token()}.parquet"),
        num_rows=1,
        num_bytes=10,
        row_groups=(1,),
        footer_checksum="0" * 32,
        fingerprint=name,
    )


def write(store: World, name: str) -> TableFile:
    file = file_of(name)
    store.write_bytes(paths.table_file("t", file.path), name.encode())
    return file


def run_of(
    name: str, *, passes: bool, mode: str = "replace", looks: bool = False
) -> Callable[[World], str]:
    """A run as `publish.stage` and the step do it: write, stage, check, publish.

    Args:
        name: Its rows.
        passes: Whether these pass their checks.
        mode: Of the output.
        looks: Whether it looks for what another run of it has done, as every run does. That is left
            out where it can find nothing, for it triples the number of states.
    """

    def run(store: World) -> str:
        target = PublishTarget(table="t", mode=cast("Any", mode))
        writer = PublishedWriter(cast("Any", store), target, COLUMNS, fingerprint=name, run_id=name)
        if looks and writer.find_published() is not None:
            return "there"
        if not (looks and writer.find_staged()):
            writer.add_files([write(store, name)])
            if writer.stage_commit() is None:
                return "there"
        if not passes:
            return "failed"
        try:
            writer.publish()
        except StagedGoneError:
            return "gone"
        return "published"

    return run


def by_hand(action: str, wanted: str) -> Callable[[World], str]:
    """`stagecoach tables publish` or `discard`, of what somebody has looked at."""

    def act(store: World) -> str:
        current = read_current(cast("Any", store), "t")
        staged = [s for s in (current.staged if current else ()) if s.fingerprint == wanted]
        if not staged:
            return "nothing"
        try:
            getattr(log, f"{action}_staged")(store, "t", staged[0].id)
        except PublishError:
            return "gone"
        return action

    return act


def gc(store: World) -> None:
    """The part of garbage collection that is about published tables."""
    rule = ExpiryRule(pinned_uris=frozenset(), older_than=timedelta(hours=1), now=NOW)
    found = find_expired(cast("Any", store), rule, NOW - timedelta(hours=1))
    for expired in found.expired:
        expired.remove()
    store.delete([item.key for item in found.orphans])


def newest(objects: Objects) -> TableVersion | None:
    return read_current(cast("Any", World(objects, conditional=True)), "t")


def visible(objects: Objects) -> set[str]:
    version = newest(objects)
    return set() if version is None else {file.fingerprint for file in version.files}


def search_of(actors: dict[str, Callable[[World], Any]], **options: Any) -> Search:
    return Search(actors={name: acting(name, act) for name, act in actors.items()}, **options)


def sound(*never: str) -> Callable[[Objects], None]:
    """The invariant of every state: nothing bad is seen, and every file that is named is there."""

    def look(objects: Objects) -> None:
        version = newest(objects)
        if version is None:
            return
        assert not visible(objects) & set(never), f"readers see {visible(objects)}"
        missing = [key for key in version.needed_keys() if key not in objects]
        assert not missing, f"version {version.number} has lost {missing}"

    return look


def objects_of(*names: str) -> Objects:
    """A table in which these were published one after the other, long ago."""
    world = World({}, conditional=True)
    for name in names:
        run_of(name, passes=True)(world)
    return aged(world.objects, timedelta(days=30))


def explained(outcome: Outcome) -> str:
    return "\n".join([*outcome.history, repr(outcome.results), repr(visible(outcome.objects))])


def test_a_bad_version_is_never_seen() -> None:
    """A run whose checks fail beside one whose checks pass; each may crash at any moment."""
    search = search_of(
        {"bad": run_of(BAD, passes=False), "good": run_of(GOOD, passes=True)},
        objects=objects_of(OLD),
        may_crash=frozenset(("bad", "good")),
        look=sound(BAD),
    )
    for outcome in search.outcomes():
        seen = visible(outcome.objects)
        if "good" in outcome.crashed:
            assert seen in ({OLD}, {GOOD}), explained(outcome)
        else:
            assert (outcome.results["good"], seen) == ("published", {GOOD}), explained(outcome)
    assert search.num_states > 500


def test_the_first_version_of_a_table_is_never_a_bad_one() -> None:
    search = search_of(
        {
            "bad": run_of(BAD, passes=False),
            "again": run_of(BAD, passes=False),
        },
        may_crash=frozenset(("bad", "again")),
        look=sound(BAD),
    )
    for outcome in search.outcomes():
        version = newest(outcome.objects)
        assert version is None or not version.has_data, explained(outcome)
        if not outcome.crashed:
            assert version is not None
            assert [s.fingerprint for s in version.staged] == [BAD], explained(outcome)


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_publishing_and_discarding_by_hand_decide_once(mode: str) -> None:
    """One publishes what another discards; each may crash at any moment."""
    world = World(objects_of(OLD), conditional=True)
    run_of(BAD, passes=False, mode=mode)(world)
    search = search_of(
        {
            "publish": by_hand("publish", BAD),
            "discard": by_hand("discard", BAD),
        },
        objects=aged(world.objects, timedelta(days=30)),
        may_crash=frozenset(("publish", "discard")),
        look=sound(),
    )
    both = {BAD} if mode == "replace" else {OLD, BAD}
    seen = set()
    for outcome in search.outcomes():
        shown = visible(outcome.objects)
        assert shown in (both, {OLD}), explained(outcome)
        if outcome.results.get("publish") == "publish":
            assert shown == both, explained(outcome)
        if outcome.results.get("publish") in ("gone", "nothing"):
            assert shown == {OLD}, explained(outcome)
        seen.add(frozenset(shown))
    assert seen == {frozenset(both), frozenset({OLD})}


@pytest.mark.parametrize("action", ["publish", "discard"])
def test_gc_beside_a_decision_by_hand(action: str) -> None:
    world = World(objects_of(OLD), conditional=True)
    run_of(BAD, passes=False, mode="append")(world)
    search = search_of(
        {"user": by_hand(action, BAD), "gc": gc},
        objects=aged(world.objects, timedelta(days=30)),
        may_crash=frozenset(("user",)),
        look=sound(),
    )
    for outcome in search.outcomes():
        assert outcome.results["gc"] is None, explained(outcome)
        expected = {OLD, BAD} if action == "publish" else {OLD}
        assert "user" in outcome.crashed or visible(outcome.objects) == expected, explained(outcome)


@pytest.mark.parametrize("other", ["gc", "discard"])
def test_a_run_that_is_repeated_goes_on_with_what_it_has_staged(other: str) -> None:
    """After a crash, long ago; beside gc, and beside somebody who discards."""
    others = {"gc": gc, "discard": by_hand("discard", GOOD)}
    world = World(objects_of(OLD), conditional=True)
    run_of(GOOD, passes=False)(world)
    search = search_of(
        {
            "retry": run_of(GOOD, passes=True, looks=True),
            other: others[other],
        },
        objects=aged(world.objects, timedelta(days=30)),
        may_crash=frozenset(("retry",)),
        look=sound(),
    )
    for outcome in search.outcomes():
        shown = visible(outcome.objects)
        if outcome.results.get("retry") == "published":
            assert shown == {GOOD}, explained(outcome)
        elif "retry" not in outcome.crashed:
            assert outcome.results["retry"] == "gone", explained(outcome)
            assert shown == {OLD}, explained(outcome)


def test_the_base_moves_while_the_checks_run() -> None:
    """An append that passes beside one that fails and a commit that is not audited."""
    plain: Callable[[World], Any] = lambda store: log.commit(  # noqa: E731
        cast("Any", store),
        TableChange(
            table="t",
            mode="append",
            token=LATE,
            committed_at="2026-01-01T00:00:00Z",
            fingerprint=LATE,
            rows={None: 1},
            columns=COLUMNS,
            files=(write(store, LATE),),
        ),
    )
    search = search_of(
        {"good": run_of(GOOD, passes=True, mode="append"), "late": plain},
        objects=objects_of(OLD),
        look=sound(BAD),
    )
    for outcome in search.outcomes():
        assert visible(outcome.objects) == {OLD, GOOD, LATE}, explained(outcome)
