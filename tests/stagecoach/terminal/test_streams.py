"""Our log handler of a process: one, whoever adds it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from stagecoach.infra.telemetry.logs import log_as_json
from stagecoach.infra.telemetry.stderr_handler import StderrHandler, root_handlers
from stagecoach.terminal.streams import configure_logging

if TYPE_CHECKING:
    import pytest


def test_a_process_has_one_handler_whoever_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    others = [h for h in root.handlers if not isinstance(h, StderrHandler)]
    monkeypatch.setattr(root, "handlers", [*others])
    monkeypatch.setattr(logging.Logger, "setLevel", lambda *_: None)
    log_as_json()
    (first,) = root_handlers()
    log_as_json()
    assert root_handlers() == [first]
    configure_logging(debug=False)
    (second,) = root_handlers()
    assert second is not first
    log_as_json()
    assert root_handlers() == [second]
    assert root.handlers == [*others, second]
