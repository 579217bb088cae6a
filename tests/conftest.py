"""What all tests share: one Spark session a test process, and the golden files."""

from __future__ import annotations

import difflib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.spark import session as spark_session
from stagecoach.infra.spark.leases import SparkLease
from stagecoach.infra.spark.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The Spark processes of tests live for a minute or less: compiling their code a second time, for
# speed, and collecting garbage in parallel cost more than they save.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "--update-golden"
FEW = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(UPDATE, action="store_true", help="write the files in tests/golden anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption(UPDATE) and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise pytest.UsageError(f"{UPDATE} is for people who read the diff; CI is set")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where workers take whole files, the files that take long come first.

    A file of a few tests starts processes of its own for each of them and may run for a minute; one
    of many shares a session. In the order of their number, which is that of xdist, the long ones
    come last and are waited for by one worker.
    """
    if config.getoption("dist", "no") == "loadfile":
        tests = Counter(item.path for item in items)
        items.sort(key=lambda item: (tests[item.path] > FEW, -tests[item.path]))


@pytest.fixture(autouse=True)
def _no_spark_unasked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that is not marked `spark` starts none: its master could be another than the tests'.

    It would pass or fail with the order of the tests in its process.
    """
    if request.node.get_closest_marker("spark") or "spark" in request.fixturenames:
        return

    def refuse(settings: EngineSettings) -> SparkSession:
        raise AssertionError(f"this test starts Spark ({settings.master}): mark it `spark`")

    monkeypatch.setattr(spark_session, "start_classic", refuse)


@pytest.fixture(scope="session")
def updates_golden(pytestconfig: pytest.Config) -> bool:
    """Whether golden files are to be written instead of compared."""
    return bool(pytestconfig.getoption(UPDATE))


@pytest.fixture(scope="session")
def golden(updates_golden: bool) -> Callable[[str, str], None]:
    """Compares a text with tests/golden/<name>, or writes it there with --update-golden."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if updates_golden:
            if text != before:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return
        lines = difflib.unified_diff(
            before.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="", n=2
        )
        difference = "\n".join(lines)
        assert text == before, f"run `make golden` if this is meant\n{difference}"

    return check


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory: pytest.TempPathFactory) -> EngineSettings:
    """Settings of the session; tests replace the storage root with their own."""
    folder: Path = tmp_path_factory.mktemp("spark")
    return EngineSettings(
        storage_root=str(folder / "store"),
        spill_dir=str(folder / "spill"),
        master="local[2]",
        parallelism=2,
        memory_bytes=512 << 20,
        writer_memory_bytes=64 << 20,
        spark_conf={"spark.sql.shuffle.partitions": "2"},
    )


@pytest.fixture(scope="session")
def spark(spark_settings: EngineSettings) -> Iterator[SparkSession]:
    """The one classic session of this test process, on two local slots."""
    with warnings.catch_warnings():
        # Whatever pyspark itself deprecates is not what our tests are about.
        warnings.simplefilter("ignore")
        session = get_session(spark_settings)
    lease = SparkLease()
    lease.take()  # a `Session` that a test closes must not stop it for the next tests
    yield session
    lease.release()
