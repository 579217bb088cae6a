"""Secrets in two shares: together they are the data, each alone is nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stagecoach.infra.errors import StorageRefusedError
from stagecoach.infra.storage.sealed import SHARES_PROPERTY, Sealed, opened, seal, shares_text

STORE = {"url": "s3://b/root", "options": {"access_key": "AKIAMARKED", "secret_key": "marked-71"}}


def reader(*sealed: Sealed) -> Any:
    """Reads the property of a job that has these shares."""
    return {SHARES_PROPERTY: shares_text(sealed)}.get


VALUES = st.dictionaries(
    st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
)


@given(VALUES)
def test_both_shares_give_the_data(values: dict[str, Any]) -> None:
    sealed = seal(values)
    other = seal({"other": "store"})
    for read in (reader(sealed), reader(other, sealed), reader(sealed, other)):
        assert opened(sealed.values, read) == values


def test_a_share_is_another_one_each_time_and_shows_nothing() -> None:
    one, two = seal(STORE), seal(STORE)
    assert not set(one.values.values()) & set(two.values.values())
    assert one.other != two.other
    for text in (str(dict(one.values)), one.other, repr(one)):
        assert "marked" not in text.lower()
    assert one.other not in repr(one)


def test_data_that_is_not_sealed_stays() -> None:
    assert opened(STORE, None) is STORE


@pytest.mark.parametrize(
    "read", [None, reader(), reader(seal(STORE)), lambda name: None, lambda name: "none"]
)
def test_a_share_alone_is_refused(read: Any) -> None:
    with pytest.raises(StorageRefusedError, match="have not arrived: Spark did not pass"):
        opened(seal(STORE).values, read)


def test_a_share_of_something_else_is_refused() -> None:
    one, two, longer = seal(STORE), seal(STORE), seal({**STORE, "more": "text"})
    for other in (two, longer):
        key = one.other.partition(":")[0]
        text = f"{key}:{other.other.partition(':')[2]}"
        with pytest.raises(StorageRefusedError, match="are damaged") as caught:
            opened(one.values, {SHARES_PROPERTY: text}.get)
        assert "marked" not in str(caught.value)
