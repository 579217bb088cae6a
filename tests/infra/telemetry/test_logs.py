"""Log lines as JSON: one object a line, with the stage at hand, without secrets and data."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from stagecoach.infra.storage import secrets
from stagecoach.infra.telemetry.logs import json_formatter, redacted, stage_context


@pytest.fixture
def lines() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger, and what it has written."""
    out = io.StringIO()
    logger = logging.getLogger("stagecoach.infra.test_logs")
    handler = logging.StreamHandler(out)
    handler.setFormatter(json_formatter())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield logger, out
    logger.removeHandler(handler)


def test_a_line_is_one_object_that_names_the_stage(
    lines: tuple[logging.Logger, io.StringIO],
) -> None:
    logger, out = lines
    logger.info("before")
    with stage_context(run="r1", query="sales", stage=2, attempt=1):
        logger.warning("%d rows\nof %s", 3, "größe")
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert first["message"] == "before"
    assert "run" not in first
    assert {
        k: second[k] for k in ("level", "logger", "message", "run", "query", "stage", "attempt")
    } == {
        "level": "WARNING",
        "logger": "stagecoach.infra.test_logs",
        "message": "3 rows of größe",
        "run": "r1",
        "query": "sales",
        "stage": 2,
        "attempt": 1,
    }
    assert second["time"].startswith("20")


def test_no_credential_and_no_value_of_the_data_is_told(
    lines: tuple[logging.Logger, io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_registered", set())  # without those of other tests
    logger, out = lines
    logger.error("GET https://bob:hunter2@host/x?token=hunter2&b=1")
    logger.error(
        "{'secret_access_key': 'hunter2', 'region': 'eu'} password=hunter2 AKIAHUNTER2HUNTER2"
    )
    logger.error("[CAST_INVALID_INPUT] The value 'hunter2 x' of the type \"STRING\" cannot be cast")
    logger.error("Conversion Error: Could not convert string 'hunter2' to INT32")
    try:
        raise ValueError("row ('hunter2', 7)")
    except ValueError:
        logger.exception("it failed")
    assert "hunter2" not in out.getvalue().lower()
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    assert found[1]["message"].count("***") == 3
    assert "'region': 'eu'" in found[1]["message"]
    assert found[-1]["exc_info"].endswith("> ValueError")
    assert "test_logs.py" in found[-1]["exc_info"]


def test_names_stay_and_length_is_bounded() -> None:
    text = "query 'sales' reads table 'orders': 12 rows"
    assert redacted(text) == text
    assert len(redacted("x" * 10_000)) == 2_000
