"""Every interleaving of a few actors over one store, each state visited once.

An actor is a plain function that is handed a store and calls real code. It is a coroutine of its
own (a greenlet, so that the code it calls knows nothing of it), which stops before each operation on
the store until the search lets it go on, or crashes it there. Two histories in
which the store holds the same and every actor has seen the same are one state, so the search is
exhaustive without walking all histories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from greenlet import getcurrent, greenlet

from stagecoach.infra.storage.fsspec_store import FsspecStore
from stagecoach.infra.storage.object_store import ByteSink, ObjectMissingError
from stagecoach.planner.errors import StagecoachError

NOW = datetime(2026, 1, 31, tzinfo=UTC)
Objects = dict[str, tuple[bytes, datetime]]
Choice = tuple[str, bool]  # an actor, and whether it crashes instead of going on


class Crashed(BaseException):
    """The process of an actor is gone; nothing may catch it."""


@dataclass
class Outcome:
    """A state in which no actor can go on.

    Args:
        objects: What the store holds.
        results: What actors that ended came to, or their error.
        crashed: The others.
        history: How it came about, for messages.
    """

    objects: Objects
    results: Mapping[str, Any]
    crashed: frozenset[str]
    history: Sequence[str]


@dataclass
class _Actor:
    name: str
    coroutine: greenlet
    trace: list[str] = field(default_factory=list)
    pending: str | None = None
    crash: bool = False
    ended: bool = False
    result: Any = None

    def told(self) -> object:
        """All that the future of the search can depend on: of an actor that is gone, nothing."""
        if self.crash:
            return None
        return repr(self.result) if self.ended else tuple(self.trace)


class World(FsspecStore):
    """A store in memory whose operations are the steps of the search.

    Args:
        objects: What it holds at first.
        conditional: Whether a write can be made to fail where there is an object, in one step.
    """

    def __init__(self, objects: Objects, *, conditional: bool) -> None:
        # Not the file system of the parent: only its class, by which listings know a store.
        self.objects = dict(objects)
        self.conditional = conditional
        self.history: list[str] = []
        self.look: Callable[[Objects], None] | None = None
        self.violation: AssertionError | None = None
        self._actors: dict[greenlet, _Actor] = {}

    @contextmanager
    def _step(self, what: str) -> Iterator[list[Any]]:
        """Wait for one's turn; what is put into the list is what the actor sees of the world."""
        actor = self._actors.get(getcurrent())
        seen: list[Any] = []
        if actor is None:  # the search itself
            yield seen
            return
        actor.pending = what
        search = actor.coroutine.parent
        assert search is not None
        search.switch()
        actor.pending = None
        if actor.crash:
            raise Crashed
        try:
            yield seen
        finally:
            actor.trace.append(f"{what}={[hash(item) for item in map(_hashable, seen)]}")
            self.history.append(f"{actor.name}: {what}")

    def _find(self, key: str, seen: list[Any]) -> bytes:
        found = self.objects.get(key)
        seen.append(None if found is None else found[0])
        if found is None:
            raise ObjectMissingError(f"cannot read {key}: it does not exist")
        return found[0]

    @property
    def is_local(self) -> bool:
        return True

    def uri(self, key: str) -> str:
        return f"world://{key}"

    def read_bytes(self, key: str, offset: int | None = None, length: int | None = None) -> bytes:
        with self._step(f"read {key}") as seen:
            content = self._find(key, seen)
        start = offset or 0
        return content[start:] if length is None else content[start : start + length]

    def open_input(self, key: str) -> pa.NativeFile:
        with self._step(f"open {key}") as seen:
            return pa.BufferReader(self._find(key, seen))

    def size(self, key: str) -> int:
        with self._step(f"size of {key}") as seen:
            return len(self._find(key, seen))

    def exists(self, key: str) -> bool:
        with self._step(f"exists {key}") as seen:
            seen.append(key in self.objects)
        return key in seen or bool(seen[0])

    def write_bytes(self, key: str, data: bytes) -> None:
        with self._step(f"write {key}"):
            self._put(key, data)

    def put_if_absent(self, key: str, data: bytes, *, looked: bool = False) -> bool:
        if not self.conditional:
            if not looked and self.exists(key):
                return False
            self.write_bytes(key, data)
            return True
        with self._step(f"put {key}") as seen:
            seen.append(key in self.objects)
            if seen[0]:
                return False
            self._put(key, data)
            return True

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:  # S3 may take them in any order and be seen in between
            with self._step(f"delete {key}"):
                self.objects.pop(key, None)
                self._check()

    def list_details(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        with self._step(f"list {prefix}") as seen:
            found = {k: v for k, v in sorted(self.objects.items()) if k.startswith(f"{prefix}/")}
            seen.append(sorted(found))
        for key, (content, moment) in found.items():
            yield key, {"size": len(content), "LastModified": moment}

    def list(self, prefix: str) -> Iterator[str]:
        for key, _ in self.list_details(prefix):
            yield key

    def folders(self, prefix: str) -> Sequence[str]:
        with self._step(f"folders {prefix}") as seen:
            below = [
                k.removeprefix(f"{prefix}/") for k in self.objects if k.startswith(f"{prefix}/")
            ]
            seen.append(sorted({key.split("/", 1)[0] for key in below if "/" in key}))
        return list(seen[0])

    def open_output(self, key: str) -> Any:
        return self._output(key)

    @contextmanager
    def _output(self, key: str) -> Iterator[ByteSink]:
        parts = _Parts()
        yield parts
        self.write_bytes(key, b"".join(parts))

    def to_dict(self) -> dict[str, Any]:
        return {"url": "world://", "options": {}}

    def _put(self, key: str, data: bytes) -> None:
        self.objects[key] = (bytes(data), NOW)
        self._check()

    def _check(self) -> None:
        if self.look is not None and self.violation is None:
            try:
                self.look(self.objects)
            except AssertionError as error:  # raised by the search, not in the actor
                self.violation = error


def _hashable(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item


class _Parts(list[bytes]):
    def write(self, data: Any, /) -> int:
        self.append(bytes(data))
        return len(self[-1])


@dataclass
class Search:
    """All interleavings of actors.

    Args:
        actors: By name: what each does with the store.
        objects: What the store holds at first.
        conditional: Whether conditional writes are honoured.
        may_crash: Actors that may be gone at any moment.
        look: Called after every change of the store; raises where an invariant does not hold.
    """

    actors: Mapping[str, Callable[[World], Any]]
    objects: Objects = field(default_factory=dict)
    conditional: bool = True
    may_crash: frozenset[str] = frozenset()
    look: Callable[[Objects], None] | None = None
    num_states: int = 0

    def outcomes(self) -> Iterator[Outcome]:
        """Yield every state in which nobody can go on, each at least once."""
        seen: set[int] = set()
        left: list[tuple[Choice, ...]] = [()]
        while left:
            outcome = self._follow(left.pop(), seen, left)
            if outcome is not None:
                yield outcome
        self.num_states = len(seen)

    def _follow(
        self, prefix: tuple[Choice, ...], seen: set[int], left: list[tuple[Choice, ...]]
    ) -> Outcome | None:
        """Go on from a history until nobody can, or until a state that was looked at."""
        world = World(self.objects, conditional=self.conditional)
        world.look = self.look
        actors = [_Actor(name, greenlet(self._act)) for name in self.actors]
        for actor in actors:
            world._actors[actor.coroutine] = actor
            actor.coroutine.switch(world, actor)
        path = list(prefix)
        try:
            for choice in prefix:
                self._take(world, actors, choice)
            while True:
                waiting = [actor.name for actor in actors if not actor.ended]
                if not waiting:
                    results = {a.name: a.result for a in actors if not a.crash}
                    crashed = frozenset(a.name for a in actors if a.crash)
                    return Outcome(world.objects, results, crashed, world.history)
                state = self._state(world, actors)
                if state in seen:
                    return None
                seen.add(state)
                choices = [(name, False) for name in waiting]
                choices += [(name, True) for name in waiting if name in self.may_crash]
                for choice in choices[1:]:
                    left.append((*path, choice))
                path.append(choices[0])
                self._take(world, actors, choices[0])
        finally:
            for actor in actors:
                if not actor.ended:
                    actor.crash = True
                    actor.coroutine.switch()

    def _act(self, world: World, actor: _Actor) -> None:
        try:
            actor.result = self.actors[actor.name](world)
        except Crashed:
            pass
        except StagecoachError as error:  # a test looks at it
            actor.result = error
        except Exception as error:  # noqa: BLE001 -- raised by the search, not in the actor
            world.violation = AssertionError(f"{actor.name} raises {error!r}")
        finally:
            actor.ended = True

    def _take(self, world: World, actors: Sequence[_Actor], choice: Choice) -> None:
        actor = next(a for a in actors if a.name == choice[0])
        actor.crash = choice[1]
        if choice[1]:
            world.history.append(f"{actor.name}: crashes before {actor.pending}")
        actor.coroutine.switch()
        if world.violation is not None:
            history = "\n".join(world.history)
            raise AssertionError(f"{world.violation}\n{history}")

    @staticmethod
    def _state(world: World, actors: Sequence[_Actor]) -> int:
        # Python keeps the hash of a bytes object, and these are few and stay.
        contents = frozenset((key, hash(content)) for key, (content, _) in world.objects.items())
        return hash((contents, tuple(actor.told() for actor in actors)))


def aged(objects: Objects, age: timedelta) -> Objects:
    """The same objects, written so long ago."""
    return {key: (content, NOW - age) for key, (content, _) in objects.items()}
