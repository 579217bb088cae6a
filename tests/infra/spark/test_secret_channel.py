"""Which secrets are sent to tasks, and what a session gets to open them with."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from stagecoach.infra.errors import ConfigError
from stagecoach.infra.spark.secret_channel import sent
from stagecoach.infra.storage.sealed import SHARES_PROPERTY, opened

SECRET = {"url": "s3://b/root", "options": {"access_key": "marked-1", "secret_key": "marked-2"}}
PLAIN = {"url": "s3://b/root", "options": {"region": "eu-central-1"}}


class Conf(dict[str, str]):
    def set(self, name: str, value: str) -> None:
        self[name] = value


class Context:
    """What is asked of a SparkContext."""

    _jsc = object()

    def __init__(self, conf: dict[str, str]) -> None:
        self.conf, self.local, self.told = conf, {}, 0  # type: ignore[var-annotated]

    def getConf(self) -> dict[str, str]:
        return self.conf

    def setLocalProperty(self, name: str, value: str | None) -> None:
        self.local[name] = value


class Session:
    """What is asked of a classic session."""

    def __init__(self, **conf: str) -> None:
        self.conf = Conf()
        self.sparkContext = Context(conf)

    @property
    def as_spark(self) -> Any:
        return self


def test_what_has_no_secret_goes_as_it_is() -> None:
    session = Session()
    with sent(session.as_spark, PLAIN) as carried:
        assert carried == PLAIN
    assert session.conf == {}
    assert session.sparkContext.local == {}


@pytest.mark.parametrize(
    "store",
    [
        SECRET,
        {"url": "sftp://me:marked-3@host/folder"},
        {"url": "gs://b/r", "options": {"filesystem_options": {"token": "marked-4"}}},
    ],
)
def test_secrets_go_as_shares_while_the_block_lasts(store: dict[str, Any]) -> None:
    session = Session()
    with sent(session.as_spark, store) as carried:
        assert "marked" not in str(carried)
        assert "marked" not in str(session.conf)
        # RDDs read the one, queries the other.
        assert opened(carried, session.sparkContext.local.get) == store
        assert opened(carried, session.conf.get) == store
    assert session.sparkContext.local == {SHARES_PROPERTY: None}


def test_stores_of_one_session_are_sent_side_by_side() -> None:
    session = Session()
    stores = [{**SECRET, "url": f"s3://b/{number}"} for number in range(5)]
    with ExitStack() as stack:
        carried = [stack.enter_context(sent(session.as_spark, store)) for store in stores]
        for values, store in zip(carried, stores, strict=True):
            assert opened(values, session.conf.get) == store
        text = session.conf[SHARES_PROPERTY]
        with sent(session.as_spark, stores[0]) as again:
            assert again == carried[0]
        assert session.conf[SHARES_PROPERTY] == text


def test_a_session_gets_its_own_shares() -> None:
    one, two = Session(), Session()
    with sent(one.as_spark, SECRET) as first, sent(two.as_spark, SECRET) as second:
        assert first != second
        assert opened(second, two.conf.get) == SECRET


def test_the_property_has_a_bound() -> None:
    session = Session()
    for number in range(50):
        with sent(session.as_spark, {**SECRET, "url": f"s3://b/{number}"}) as carried:
            assert opened(carried, session.conf.get)["url"] == f"s3://b/{number}"
    assert session.conf[SHARES_PROPERTY].count(",") == 7


@pytest.mark.parametrize("pattern", ["(?i)password", "a^"])
def test_a_spark_that_would_show_them_gets_none(pattern: str) -> None:
    session = Session(**{"spark.redaction.regex": pattern})
    with (
        pytest.raises(ConfigError, match=r"spark\.redaction\.regex is '.*add `secret` to it"),
        sent(session.as_spark, SECRET),
    ):
        pass
    assert session.conf == {}
    with sent(session.as_spark, PLAIN):
        pass
