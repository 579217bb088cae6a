"""What carries secrets does not show them: texts of values, of errors, of logs and of tracebacks."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stagecoach
from stagecoach.assets.automation.alerts import Alert, Webhook
from stagecoach.commands.main import cli
from stagecoach.infra.config.settings import EngineSettings, load_settings
from stagecoach.infra.errors import ConfigError, StorageError
from stagecoach.infra.formats.deduplicated.inputs import ChunkInput
from stagecoach.infra.reading.inputs import ParquetInput
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.infra.telemetry.logs import redacted
from stagecoach.infra.telemetry.metrics import StageMetrics
from stagecoach.terminal.streams import configure_logging

SECRET = "marked-secret-71"
OPTIONS: dict[str, Any] = {"access_key": SECRET, "secret_key": SECRET, "session_token": SECRET}

# Names under which values travel that have secrets in them, as plain data.
CARRIERS = {"storage_options", "store", "spark_conf", "filesystem_options"}


def carriers() -> list[tuple[str, dataclasses.Field[Any]]]:
    """Every mapping of such a name in a data class of ours that has no `__repr__` of its own."""
    for package in (stagecoach,):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    ours = [m for n, m in sys.modules.items() if n.split(".")[0] == "stagecoach"]
    classes = {c for m in ours for c in vars(m).values() if isinstance(c, type)}
    return [
        (f"{c.__module__}.{c.__qualname__}", f)
        for c in classes
        if dataclasses.is_dataclass(c) and "__repr__" in vars(c) and _is_generated(c)
        for f in dataclasses.fields(c)
        if f.name in CARRIERS and ("dict" in str(f.type) or "Mapping" in str(f.type))
    ]


def _is_generated(kind: type) -> bool:
    return getattr(kind.__repr__, "__wrapped__", None) is not None


def test_no_field_that_carries_secrets_is_in_a_repr() -> None:
    found = carriers()
    assert {
        "stagecoach.infra.reading.inputs.ParquetInput",
        "stagecoach.infra.worker.spec.TaskSettings",
    } <= {name for name, _ in found}
    assert [f"{name}.{f.name}" for name, f in found if f.repr] == []


def test_values_do_not_show_their_secrets() -> None:
    conf = {"spark.hadoop.fs.s3a.secret.key": SECRET, "spark.executor.memory": "3g"}
    settings = EngineSettings(
        storage_options=StorageOptions(**OPTIONS, endpoint_url=f"http://me:{SECRET}@host:1"),
        remote=f"sc://host:15002/;token={SECRET}",
        metrics_pushgateway=f"http://me:{SECRET}@gateway:9091",
        spark_conf=conf,
    )
    shown = repr(settings)
    for value in (settings, settings.storage_options, settings.open_store()):
        assert SECRET not in repr(value) + str(value)
    for text in ("host:1", "sc://host:15002/", "gateway:9091", "spark.executor.memory': '3g'"):
        assert text in shown, "what is no secret is shown"
    for leaf in (
        ParquetInput((), (), dict(OPTIONS)),
        ChunkInput(columns=(), storage_options=OPTIONS),
    ):
        assert SECRET not in repr(leaf)


def test_settings_that_cannot_be_read_are_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(f"codec: lz4\nstorage_options: {{secret_key: '{SECRET}\n")
    with pytest.raises(ConfigError, match=r"settings\.yaml, line \d+: ") as caught:
        load_settings(path, environment={})
    assert SECRET not in str(caught.value)
    done = CliRunner().invoke(cli, ["config", "--settings", str(path), "--debug"])
    assert "Traceback" in done.output
    assert "settings.yaml, line" in done.output
    assert SECRET not in done.output


def test_tracebacks_and_logs_are_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As an error of somebody else's could: its text quotes what it was called with.
    def fail(*_: object, **__: object) -> None:
        options = StorageOptions(**OPTIONS)
        EngineSettings(spark_conf={"spark.my.password": "marked-password-72"})
        try:
            raise RuntimeError(f"called with {options.to_dict()}")
        except RuntimeError as error:
            raise StorageError("the password marked-password-72 is wrong") from error

    monkeypatch.setattr("stagecoach.infra.config.settings.load_configuration", fail)
    monkeypatch.setattr("stagecoach.commands.config.load_configuration", fail, raising=False)
    done = CliRunner().invoke(cli, ["config", "--debug"])
    assert "RuntimeError: called with" in done.output
    assert "the password *** is wrong" in done.output
    assert SECRET not in done.output
    assert "marked-password-72" not in done.output

    for debug in (False, True):
        configure_logging(debug=debug)
        try:
            fail()
        except StorageError:
            logging.getLogger("stagecoach.infra.test").warning("it has %s", SECRET, exc_info=True)
        said = capsys.readouterr().err
        assert "it has ***" in said
        assert ("Traceback" in said) == debug
        assert SECRET not in said
    assert redacted(f"it has {SECRET}") == "it has ***"


def test_addresses_that_are_told_are_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    StageMetrics().push(f"http://me:{SECRET}@127.0.0.1:1", "sales")
    assert "metrics cannot be pushed to http://***@127.0.0.1:1" in caplog.text
    assert SECRET not in caplog.text
    # Not an address that Python can ask for, and its error would quote it.
    hook = Webhook(url=f"http://127.0.0.1:1/{SECRET} x", tries=1)
    with pytest.raises(OSError, match=r"webhook on 127\.0\.0\.1: InvalidURL") as caught:
        hook(Alert(kind="late", query="sales", message="late"))
    assert SECRET not in str(caught.value) + repr(hook)
