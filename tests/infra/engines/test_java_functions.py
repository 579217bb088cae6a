"""DuckDB's `java_…` functions: values that Java gave, NULLs, and columns of several vectors."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from stagecoach.infra.engines.duckdb.java_functions import _SIGNATURES, FUNCTIONS, JavaFunctions

# What StrictMath gives on Java 17, as Spark shows it; many of these differ from the C library.
VALUES = {
    "exp(1)": "0x1.5bf0a8b14576ap+1",
    "exp(-745.13)": "0x0.0000000000001p-1022",
    "exp(0.3)": "0x1.599058c8c1a96p+0",
    "expm1(1e-10)": "0x1.b7cdfd9dda4e3p-34",
    "expm1(-2.5)": "-0x1.d5f8f47ed617cp-1",
    "expm1(40)": "0x1.a220d397972eap+57",
    "log(3)": "0x1.193ea7aad030ap+0",
    "log(0.9999999)": "-0x1.ad7f2b1049b9fp-24",
    "log(5e-324)": "-0x1.74385446d71c3p+9",
    "log10(7)": "0x1.b0b0b0b78cc3fp-1",
    "log10(1e23)": "0x1.7000000000000p+4",
    "log1p(-0.4)": "-0x1.058aefa811452p-1",
    "log1p(0.41)": "0x1.5fd5fabe64085p-2",
    "log1p(1e-20)": "0x1.79ca10c924223p-67",
    "cbrt(2)": "0x1.428a2f98d728bp+0",
    "cbrt(-1e-310)": "-0x1.a9d1b0b5d7427p-344",
    "asin(0.98)": "0x1.5ed690583be07p+0",
    "asin(-0.6)": "-0x1.4978fa3269ee1p-1",
    "acos(-0.7)": "0x1.2c501446cd5f2p+1",
    "acos(0.2)": "0x1.5e9383efad0d1p+0",
    "atan(0.6)": "0x1.14b1dd5f90ce1p-1",
    "atan(-1e18)": "-0x1.921fb54442d18p+0",
    "sinh(0.5)": "0x1.0acd00fe63b97p-1",
    "sinh(-30)": "-0x1.370470aec28edp+42",
    "cosh(0.2)": "0x1.0523184b1ee9dp+0",
    "cosh(5)": "0x1.28d6fcbeff3aap+6",
    "tanh(0.7)": "0x1.356fb17af2e92p-1",
    "tanh(-3)": "-0x1.fd77d111a0b00p-1",
    "asinh(0.5)": "0x1.ecc2caec5160ap-2",
    "asinh(-3)": "-0x1.d185b507edc0ep+0",
    "acosh(1.5)": "0x1.ecc2caec5160ap-1",
    "acosh(7)": "0x1.5124271980435p+1",
    "atanh(0.3)": "0x1.3cf2b50617c95p-2",
    "atanh(-0.9)": "-0x1.78e360604b32dp+0",
    "pow(1.1, 300)": "0x1.30a90161ee3b5p+41",
    "pow(-3, 7)": "-0x1.1160000000000p+11",
    "pow(0.9, -1e4)": "inf",
    "pow(2, -1074.3)": "0x0.0000000000001p-1022",
    "atan2(1, -3)": "0x1.68f095fdf593cp+1",
    "hypot(1e200, 3e199)": "0x1.5d2b5969a98dap+664",
}


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        JavaFunctions(connection).declare(" ".join(_SIGNATURES))
        yield connection


def test_values_are_javas(connection: duckdb.DuckDBPyConnection) -> None:
    found = connection.execute(f"SELECT {', '.join(f'java_{call}' for call in VALUES)}").fetchone()
    assert found is not None
    assert dict(zip(VALUES, (v.hex() for v in found), strict=True)) == VALUES
    assert {call.split("(")[0] for call in VALUES} == {name[5:] for name in FUNCTIONS}


def test_nulls_are_null_and_rows_keep_their_places(connection: duckdb.DuckDBPyConnection) -> None:
    rows = connection.execute(
        "SELECT count(*), count(e), count(p), sum(CASE WHEN abs(ln(e) - x) < 1e-9 THEN 1 END) FROM "
        "(SELECT x, java_exp(x) AS e, java_pow(x, 2) AS p FROM (SELECT "
        "CASE WHEN i % 10 > 0 THEN i % 97 END::DOUBLE AS x FROM range(10000) t(i)))"
    ).fetchall()
    assert rows == [(10_000, 9_000, 9_000, 9_000)]


# What Java 17 and Java 25 give, and what is known without the version.
FLOATS = {
    "DOUBLE '2e23'": ("1.9999999999999998E23", "2.0E23", None),
    "DOUBLE '2e-3'": ("0.002", "0.002", "0.002"),
    "DOUBLE '-1e23'": ("-9.999999999999999E22", "-1.0E23", None),
    "DOUBLE '4.9e-324'": ("4.9E-324", "4.9E-324", "4.9E-324"),
    "FLOAT '1.4e-45'": ("1.4E-45", "1.4E-45", "1.4E-45"),
}


@pytest.mark.parametrize("call", FLOATS)
def test_texts_of_floats_are_javas(connection: duckdb.DuckDBPyConnection, call: str) -> None:
    kind = call.split()[0].lower()
    name = f"java_text_of_{kind}"
    found = connection.execute(
        f"SELECT {', '.join(f'{name}({call}, {fewest})' for fewest in (0, 1, 'NULL'))}"
    ).fetchone()
    assert found == FLOATS[call]


def test_hashes_are_sparks(connection: duckdb.DuckDBPyConnection) -> None:
    long_text = "encode('a string of more than thirty-two bytes, ä')"
    rows = connection.execute(
        "SELECT java_hash_double(2.5, java_hash_integer(1, java_hash_blob('Spark'::BLOB, 42))), "
        "java_xxhash64_double(2.5, java_xxhash64_integer(1, java_xxhash64_blob('Spark'::BLOB, 42))),"
        f" java_hash_blob({long_text}, 42), java_xxhash64_blob({long_text}, 42), "
        "java_hash_integer(NULL, 42), java_sha512('Spark'::BLOB)"
    ).fetchone()
    assert rows is not None
    assert rows[:5] == (1762445889, -2112883020078179034, -376425023, -1073020739531345986, 42)
    assert rows[5].startswith("44844a586c54c9a212da1dbfe05c5f17")
