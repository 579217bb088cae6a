"""Functions of strings and numbers over texts that look like numbers, dates, URLs and odd bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.cases_texts import TEXTS, TEXTS_REFUSED
from tests.differential.edge_texts import write_edge_texts
from tests.differential.test_functions import Proof, check, report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def texts(oracle: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Proof:
    session = oracle.newSession()
    for name in ("ansi.enabled", "codegen.wholeStage", "codegen.factoryMode", "session.timeZone"):
        session.conf.set(f"spark.sql.{name}", oracle.conf.get(f"spark.sql.{name}"))
    tables = write_edge_texts(tmp_path_factory.mktemp("texts"))
    session.read.parquet(*tables.files["e"]).createOrReplaceTempView("e")
    return Proof(tables, session)


@pytest.mark.parametrize("group", list(TEXTS))
def test_functions_of_odd_texts_run_on_duckdb_and_equal_spark(texts: Proof, group: str) -> None:
    wrong, cases = check(texts, TEXTS[group])
    wrong += [f"{c.expr}: is not native: {c.refusal}" for c in cases if c.stage is not None and not c.is_native]  # fmt: skip
    assert not wrong, report(wrong)


def test_refused_functions_of_odd_texts_have_our_types(texts: Proof) -> None:
    wrong, cases = check(texts, TEXTS_REFUSED)
    wrong += [f"{c.expr}: is native" for c in cases if c.is_native]
    assert not wrong, report(wrong)
