"""Asks a Connect server for the texts of this folder, as a program: prints what became of each.

A process with a classic session cannot have a Connect session too. `raw` sends the texts as they
are, `checked` looks at the server's analysis first, as for a server that is not ours.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from stagecoach.infra.config.settings import EngineSettings
from stagecoach.infra.engines.spark.errors import explain_error
from stagecoach.infra.engines.spark.query import query_frame
from stagecoach.infra.functions.function_set import FunctionSet
from stagecoach.infra.functions.loading import SOURCE
from stagecoach.infra.functions.sources import find_code
from stagecoach.infra.spark.guard.plan_guard import check_foreign
from stagecoach.infra.spark.session import get_session, isolated_session, stop_sessions
from stagecoach.planner.errors import StagecoachError
from stagecoach.planner.plan.expressions import Literal
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.syntax.text import SparkText
from stagecoach.planner.types import STRING
from tests.security.bypasses import BYPASSES
from tests.security.test_plan_guard import HARMLESS, NATION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def answer(session: SparkSession, sql: str, mode: str) -> str:
    try:
        frame = session.sql(sql)
        if mode == "checked":
            check_foreign(frame, sql.replace("reflect", "").replace("java_method", ""))
        frame.schema  # noqa: B018 -- has the server analyse it
    except (PySparkException, StagecoachError) as error:
        return f"{type(error).__name__}: {error}"[:500]
    return "answered"


def functions(session: SparkSession) -> dict[str, str]:
    """What becomes of functions of a project, which the server's workers import from a folder."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "udf_shout.py").write_text("def shout(text): return text.upper()\n")
        code = SOURCE + find_code("udf_shout", (folder,)).digest
        shout = ProjectFunction(
            "shout", "udf_shout:shout", (STRING,), STRING, "scalar", True, code=code
        )
        text = SparkText("SELECT shout(n_name) AS v FROM nation")
        frame = query_frame(session, text, {}, FunctionSet((shout,), (folder,)))
        called = ",".join(sorted(row["v"] for row in frame.collect()))
        missing = replace(shout, python="udf_none:f", name="none")
        frame = query_frame(
            session, SparkText("SELECT none(n_name) FROM nation"), {}, FunctionSet((missing,))
        )
        try:
            frame.collect()
        except PySparkException as error:
            failed = str(explain_error(error, "q", "q/stage_0"))
    return {"function": called, "function that is missing": failed}


def main(url: str, mode: str) -> None:
    spark = get_session(EngineSettings(remote=url, storage_root=str(Path("/tmp/unused"))))
    with isolated_session(spark, "UTC") as session:
        rows = [(1, "a", "x"), (2, "b", "y")]
        session.createDataFrame(rows, NATION).createOrReplaceTempView("nation")
        texts = HARMLESS | BYPASSES
        if mode == "checked":  # a server runs commands as soon as it gets them
            texts = {name: sql for name, sql in texts.items() if not name.startswith("command")}
        found = {name: answer(session, sql, mode) for name, sql in texts.items()}
        value = {"p": Literal(STRING, "${env:HOME}")}
        frame = query_frame(session, SparkText("SELECT :p AS c"), value)
        found["substitution"] = frame.collect()[0]["c"]
        found |= functions(session)
    stop_sessions()
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
