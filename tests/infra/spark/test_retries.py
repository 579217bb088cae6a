"""Requests to a Connect server that does not answer are tried again often, and not for long."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

from stagecoach.infra.spark.session import _retry_for


class Client:
    def __init__(self) -> None:
        self.policies: list[DefaultPolicy] = []

    def set_retry_policies(self, policies: list[DefaultPolicy]) -> None:
        self.policies = policies


@pytest.mark.parametrize("seconds", [2.0, 60.0])
def test_waits_are_short_and_end_after_the_time_that_is_given(seconds: float) -> None:
    session: Any = type("Session", (), {"client": Client()})()
    _retry_for(session, seconds)
    state = RetryPolicyState(session.client.policies[0])
    waits = list(takewhile(lambda wait: wait is not None, iter(state.next_attempt, object())))
    milliseconds = [wait for wait in waits if wait is not None]
    assert max(milliseconds) <= 1500
    assert seconds * 1000 <= sum(milliseconds) <= seconds * 1500 + 2000
