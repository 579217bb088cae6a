"""What happens to one worker's network, disk and clock."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.cluster_faults.scene import Kind, Scene, for_a_while
from tests.fault_proxy import Fault

_DISK_MEGABYTES = 96
_SMALL_DISK = f"""
mount -t tmpfs -o size={_DISK_MEGABYTES}m,mode=0777 tmpfs "$0" &&
mkdir "$0/work" && mount --bind "$0/work" "$1" && shift && exec "$@"
"""
_CLOCK_FOLDERS = ("/usr/lib/*/faketime", "/usr/local/lib/faketime")
_HOUR = 3600
_WRONG_BY = (-26 * _HOUR, -1 * _HOUR, -120, 120, 1 * _HOUR, 26 * _HOUR)


# ---------------------------------------------------------------- network

_FOR_GOOD = -1
_NETWORK = {
    "network cut (reset)": Fault("reset", times=_FOR_GOOD),
    "network cut (silent)": Fault("late", times=_FOR_GOOD, seconds=600),
    "network slow": Fault("slow", times=_FOR_GOOD, seconds=2),
    "responses cut short": Fault("cut", times=_FOR_GOOD),
    "storage busy (503)": Fault("status", times=_FOR_GOOD),
}


@contextmanager
def _network(fault: Fault, scene: Scene) -> Iterator[None]:
    """All requests of one worker to the storage."""
    proxy = scene.bed.proxies[scene.worker()]
    proxy.add(replace(fault))
    with for_a_while(proxy.clear, scene.seconds()):
        yield


# ---------------------------------------------------------------- disk


@contextmanager
def _small_disk(scene: Scene) -> Iterator[None]:
    """One worker has its files on a small device, which no other process sees."""
    bed, name = scene.bed, scene.worker()
    bed.spill.mkdir(exist_ok=True)
    work = bed.cluster.folder / name / "work"
    work.mkdir(parents=True, exist_ok=True)
    environment = bed.cluster.own_environments[name]
    command = ["unshare", "--mount", "sh", "-c", _SMALL_DISK, str(bed.spill), str(work)]
    bed.cluster.prefixes[name] = command
    bed.cluster.own_environments[name] = {**environment, "SPARK_LOCAL_DIRS": str(bed.spill)}
    try:
        bed.restart(name)
        yield
    finally:
        del bed.cluster.prefixes[name]
        bed.cluster.own_environments[name] = environment
        bed.restart(name)


@contextmanager
def _disk_full(scene: Scene) -> Iterator[None]:
    (name,) = scene.bed.cluster.prefixes
    place = Path(f"/proc/{scene.pid(name)}/root{scene.bed.spill}")
    status = os.statvfs(place)
    free = status.f_bavail * status.f_frsize
    filler = place / "filler"
    filler.write_bytes(bytes(max(free - scene.dice.randrange(0, 9) * 4096, 0)))
    with for_a_while(lambda: filler.unlink(missing_ok=True), scene.seconds()):
        yield


# ---------------------------------------------------------------- clock


@contextmanager
def _own_clock(scene: Scene) -> Iterator[None]:
    """One worker has a clock of its own, which is right until the fault."""
    library = clock_library()
    assert library is not None
    bed, name = scene.bed, scene.worker()
    file = _clock_file(scene)
    file.write_text("+0\n")
    environment = bed.cluster.own_environments[name]
    bed.cluster.own_environments[name] = {
        **environment,
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    try:
        bed.restart(name)
        yield
    finally:
        bed.cluster.own_environments[name] = environment
        bed.restart(name)


@contextmanager
def _clock_wrong(scene: Scene) -> Iterator[None]:
    file = _clock_file(scene)
    new = file.with_suffix(".new")
    new.write_text(f"{scene.dice.choice(_WRONG_BY):+d}\n")
    new.replace(file)
    yield


def _clock_file(scene: Scene) -> Path:
    return scene.bed.folder / "clock"


def clock_library() -> Path | None:
    """The library that gives processes another clock (libfaketime), if it is installed."""
    names = (f"{folder}/libfaketimeMT.so.1" for folder in _CLOCK_FOLDERS)
    return next((path for name in names for path in Path("/").glob(name.lstrip("/"))), None)


def can_mount() -> bool:
    """Whether a process may have devices of its own here."""
    try:
        return not subprocess.run(["unshare", "--mount", "true"], check=False).returncode
    except FileNotFoundError:
        return False


NETWORK_KINDS = tuple(Kind(name, partial(_network, fault)) for name, fault in _NETWORK.items())
DISK_KINDS = (Kind("disk full", _disk_full, prepared=_small_disk),)
CLOCK_KINDS = (Kind("clock wrong", _clock_wrong, prepared=_own_clock),)
