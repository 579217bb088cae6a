"""Variables that are read while others delete them."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from stagecoach.infra.storage.environment import variables

if TYPE_CHECKING:
    import pytest


def test_variables_by_the_beginning_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SC_TEST_A", "1")
    monkeypatch.setenv("SC_TEST_B", "2")
    monkeypatch.setenv("SC_OTHER", "3")
    assert variables("SC_TEST_") == {"SC_TEST_A": "1", "SC_TEST_B": "2"}
    assert variables("SC_OTHER", "SC_TEST_B") == {"SC_OTHER": "3", "SC_TEST_B": "2"}


def test_a_variable_may_go_meanwhile() -> None:
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            for number in range(50):
                os.environ[f"SC_TEST_{number}"] = "1"
            for number in range(50):
                del os.environ[f"SC_TEST_{number}"]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        # With `os.environ.items()`, one of some hundred fails.
        for _ in range(2_000):
            assert set(variables("SC_TEST_").values()) <= {"1"}
    finally:
        ended.set()
        thread.join()
