"""TLS, and logging in with a name and a token, by the ADBC driver; no statement runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import adbc_driver_flightsql.dbapi as flight_sql
import pyarrow.flight as fl
import pytest
from adbc_driver_manager import Error

from stagecoach.flight.errors import ServeError
from stagecoach.flight.serving import Serving
from stagecoach.flight.tokens import TokenFile
from tests.certificates import own_certificate
from tests.stagecoach.flight.conftest import MakeServing
from tests.stagecoach.flight.sql_client import SqlClient, command

ROOTS = "adbc.flight.sql.client_option.tls_root_certs"
HEADER = "adbc.flight.sql.authorization_header"


@pytest.fixture(scope="module")
def certificate() -> tuple[bytes, bytes]:
    return own_certificate()


@pytest.fixture(scope="module")
def secured(
    make_serving: MakeServing, users: dict[str, str], certificate: tuple[bytes, bytes]
) -> Iterator[Serving]:
    with make_serving(tokens=TokenFile(Path(users["file"])), tls=certificate) as found:
        yield found


def test_clients_log_in_over_tls(
    secured: Serving, users: dict[str, str], certificate: tuple[bytes, bytes]
) -> None:
    assert secured.uri.startswith("grpc+tls://")
    roots = {ROOTS: certificate[0].decode()}
    by_name = {"username": "alice", "password": users["alice"]}
    by_token = {HEADER: f"Bearer {users['bob']}"}
    for given in (by_name, by_token):
        with flight_sql.connect(
            secured.uri, db_kwargs={**roots, **given}, autocommit=True
        ) as found:
            assert found.adbc_get_info()["vendor_name"] == "Stagecoach"
            assert found.adbc_get_table_types() == ["TABLE"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"username": "alice", "password": "sc_wrong"},
        {HEADER: "Bearer sc_wrong"},
    ],
)
def test_others_do_not(
    secured: Serving, certificate: tuple[bytes, bytes], given: dict[str, str]
) -> None:
    options = {ROOTS: certificate[0].decode(), **given}
    with (
        pytest.raises(Error, match="needs a token"),
        flight_sql.connect(secured.uri, db_kwargs=options, autocommit=True) as found,
    ):
        found.adbc_get_table_types()


def test_a_connection_without_tls_is_refused(secured: Serving, users: dict[str, str]) -> None:
    plain = secured.uri.replace("grpc+tls", "grpc")
    with SqlClient(plain, users["alice"]) as client, pytest.raises(fl.FlightUnavailableError):
        client.info(command("CommandGetCatalogs"))


def test_an_address_that_is_taken(make_serving: MakeServing, serving: Serving) -> None:
    with pytest.raises(ServeError, match="choose another one with --host and --port"):
        make_serving(port=serving.server.port)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--host", "0.0.0.0"], "give --tokens and --tls-cert and --tls-key, or --insecure"),
        (["--host", "0.0.0.0", "--tokens", "{file}"], "give --tls-cert and --tls-key"),
        (["--tls-cert", "{file}"], "belong together"),
        (["--new-token", "alice"], "--new-token needs --tokens"),
        (["--tokens", "nowhere.txt"], "No such file"),
        (["--ticket-key", "{file}0"], "does not exist"),
    ],
)
def test_a_server_is_not_open_by_mistake(
    options: list[str], text: str, users: dict[str, str]
) -> None:
    from click.testing import CliRunner

    from stagecoach.commands.main import cli

    filled = [option.format(file=users["file"]) for option in options]
    done = CliRunner().invoke(cli, ["serve", *filled])
    assert done.exit_code in (1, 2)
    assert text in " ".join(done.output.split())
