"""The file of tokens, and who a header is."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from stagecoach.flight.auth import Users
from stagecoach.flight.errors import NotKnownError
from stagecoach.flight.tokens import TokenFile, TokenFileError, add_token


def test_a_token_is_its_users(tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    tokens = {name: add_token(file, name) for name in ("alice", "bob")}
    found = TokenFile(file)
    assert {name: found.user(token) for name, token in tokens.items()} == {
        "alice": "alice",
        "bob": "bob",
    }
    assert found.user("") is None
    assert found.user(tokens["alice"][:-1]) is None
    assert os.stat(file).st_mode & 0o077 == 0
    assert not any(token in file.read_text() for token in tokens.values())


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    first = add_token(file, "alice")
    found = TokenFile(file)
    second = add_token(file, "alice")
    assert found.user(second) == "alice"
    file.write_text(file.read_text().splitlines()[1])
    assert (found.user(first), found.user(second)) == (None, "alice")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no tokens"),
        ("# nobody\n\n", "has no tokens"),
        ("alice secret\n", "line 1 is not 'NAME sha256:HASH'"),
        ("\nalice sha256:12\n", "line 2 is not"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "tokens.txt"
    file.write_text(text)
    with pytest.raises(TokenFileError, match=problem) as caught:
        TokenFile(file)
    assert "secret" not in str(caught.value)
    with pytest.raises(TokenFileError, match="No such file"):
        TokenFile(tmp_path / "other.txt")
    with pytest.raises(TokenFileError, match="not a valid name"):
        add_token(file, "a b")


def _basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def test_headers(tmp_path: Path) -> None:
    file = tmp_path / "tokens.txt"
    token = add_token(file, "alice")
    users = Users(TokenFile(file))

    def name(*values: str) -> str:
        return users.user({"authorization": list(values)}).name

    assert name(f"Bearer {token}") == "alice"
    assert name(_basic(f"alice:{token}")) == "alice"
    assert users.user({"authorization": [_basic(f"alice:{token}")]}).bearer == token
    assert users.user({"authorization": [f"Bearer {token}"]}).bearer is None
    for values in (
        (),
        ("",),
        ("Bearer ",),
        ("Bearer x",),
        (token,),
        (f"Digest {token}",),
        (_basic(f"bob:{token}"),),
        (_basic(token),),
        ("Basic ????",),
        (f"Bearer {token}", f"Bearer {token}"),
    ):
        with pytest.raises(NotKnownError, match="needs a token"):
            name(*values)


def test_a_proxy_names_the_user() -> None:
    users = Users(None, "X-User")
    assert users.user({"x-user": ["carol"]}).name == "carol"
    assert users.user({}).name == "anonymous"
    assert Users(None).user({"x-user": ["carol"]}).name == "anonymous"
