"""Damage to a committed stage: a file removed, truncated or changed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from stagecoach.infra.runtime.stages.run import Run
from stagecoach.infra.shuffle.manifest import Manifest
from stagecoach.infra.storage import layout

Damage = Callable[[Run, int, Manifest, Random], None]


def _key(manifest: Manifest, dice: Random) -> str:
    return manifest.file_key(dice.choice(manifest.files))


def _index(manifest: Manifest) -> str:
    return manifest.index_key


def _delete(context: Run, key: str) -> None:
    context.store.delete([key])


def _cut(context: Run, key: str, dice: Random) -> None:
    content = context.store.read_bytes(key)
    context.store.write_bytes(key, content[: dice.randrange(len(content))])


def _flip(context: Run, key: str, dice: Random) -> None:
    content = bytearray(context.store.read_bytes(key))
    content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    context.store.write_bytes(key, bytes(content))


def _swap(context: Run, manifest: Manifest, dice: Random) -> None:
    keys = [manifest.file_key(file) for file in manifest.files]
    if len(keys) < 2:
        return _flip(context, keys[0], dice)
    one, other = dice.sample(keys, 2)
    first, second = context.store.read_bytes(one), context.store.read_bytes(other)
    context.store.write_bytes(one, second)
    context.store.write_bytes(other, first)
    return None


def _pointer(context: Run, stage_id: int, dice: Random) -> None:
    key = layout.run_stage(context.root_run_id, f"stage_{stage_id}")
    content = context.store.read_bytes(key)
    context.store.write_bytes(key, content[: dice.randrange(len(content))])


def _foreign(context: Run, manifest: Manifest, dice: Random) -> None:
    others = [f for f in context.fingerprints.values() if f != manifest.fingerprint]
    for other in dice.sample(others, len(others)):
        if context.store.exists(layout.manifest(other)):
            content = context.store.read_bytes(layout.manifest(other))
            context.store.write_bytes(layout.manifest(manifest.fingerprint), content)
            return
    _delete(context, layout.manifest(manifest.fingerprint))


DAMAGE: dict[str, Damage] = {
    "file deleted": lambda c, i, m, d: _delete(c, _key(m, d)),
    "file cut short": lambda c, i, m, d: _cut(c, _key(m, d), d),
    "bit of a file flipped": lambda c, i, m, d: _flip(c, _key(m, d), d),
    "files swapped": lambda c, i, m, d: _swap(c, m, d),
    "index deleted": lambda c, i, m, d: _delete(c, _index(m)),
    "bit of an index flipped": lambda c, i, m, d: _flip(c, _index(m), d),
    "manifest deleted": lambda c, i, m, d: _delete(c, layout.manifest(m.fingerprint)),
    "manifest cut short": lambda c, i, m, d: _cut(c, layout.manifest(m.fingerprint), d),
    "bit of a manifest flipped": lambda c, i, m, d: _flip(c, layout.manifest(m.fingerprint), d),
    "manifest of another stage": lambda c, i, m, d: _foreign(c, m, d),
    "pointer of a run cut short": lambda c, i, m, d: _pointer(c, i, d),
}
