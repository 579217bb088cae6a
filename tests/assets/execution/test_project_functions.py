"""Functions of a project through Dagster: a change of their code runs what calls them, once more."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from stagecoach.assets.execution.executor import execute_in_process
from stagecoach.infra.config.settings import EngineSettings
from stagecoach.planner.options import PlannerOptions
from tests.assets.execution.test_resources import QUIET, define, metadata_of, rows_of

OPTIONS = PlannerOptions(force_distribution=True, num_partitions=2, broadcast_bytes=0)
CATALOG = """
tables: {pets: {location: pets.parquet}, kinds: {location: kinds.parquet}}
functions:
  tidy: {python: "pets_code:tidy", arguments: [STRING], returns: STRING, deterministic: true}
  stamp: {python: "pets_code:stamp", arguments: [STRING], returns: STRING}
"""
CODE = """
def tidy(name):
    return name.strip().{case}()

def stamp(name):
    if name == "cat":
        raise LookupError("no cats")
    return name
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"kind": [" Cat", "dog ", "cat"]}), tmp_path / "pets.parquet")
    pq.write_table(pa.table({"kind": ["cat", "dog"], "n": [1, 2]}), tmp_path / "kinds.parquet")
    (tmp_path / "catalog.yaml").write_text(CATALOG)
    (tmp_path / "pets_code.py").write_text(CODE.format(case="lower"))
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "tidied.sql").write_text(
        "SELECT lower(tidy(p.kind)) AS kind, sum(k.n) AS n FROM pets p "
        "JOIN kinds k ON lower(tidy(p.kind)) = k.kind GROUP BY 1 ORDER BY 1"
    )
    (tmp_path / "queries" / "stamped.sql").write_text("SELECT stamp(kind) AS kind FROM kinds")
    return tmp_path


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.mark.slow
@pytest.mark.spark
def test_a_change_of_the_code_runs_the_stages_that_call_it(
    project: Path,
    spark: SparkSession,
    spark_settings: EngineSettings,
    instance: dg.DagsterInstance,
) -> None:
    del spark
    versions = []
    others: list[str] = []
    for case, expected in (("lower", "nothing"), ("lower", "all"), ("upper", "others")):
        (project / "pets_code.py").write_text(CODE.format(case=case))
        definitions = define(project, spark_settings, OPTIONS)  # as a reload of the code location
        job = definitions.resolve_job_def("run_tidied")
        steps = [node.name for node in job.nodes]
        result = execute_in_process(job, instance=instance, run_config=QUIET)
        assert result.success
        head = metadata_of(result, "tidied")
        assert head.engine == "duckdb"
        assert rows_of(project, head) == [["cat", 2], ["dog", 2]]
        reused = sorted(step for step in steps if metadata_of(result, step).reused)
        assert reused == {"nothing": [], "all": sorted(steps), "others": others}[expected]
        others = [step for step in steps if step.endswith("stage_0")]
        graph = definitions.resolve_asset_graph()
        versions.append(
            {str(key): graph.get(key).code_version for key in graph.materializable_asset_keys}
        )
    first, again, changed = versions
    assert first == again
    assert first != changed


@pytest.mark.slow
@pytest.mark.spark
def test_what_a_function_raises_fails_the_step_with_its_traceback(
    project: Path,
    spark: SparkSession,
    spark_settings: EngineSettings,
    instance: dg.DagsterInstance,
) -> None:
    del spark
    job = define(project, spark_settings, OPTIONS).resolve_job_def("run_stamped")
    result = execute_in_process(job, instance=instance, run_config=QUIET)
    assert not result.success
    (failed,) = (e for e in result.all_events if e.event_type is dg.DagsterEventType.STEP_FAILURE)
    text = failed.event_specific_data.error_display_string.replace("\\'", "'")
    assert (
        "function 'stamp' (pets_code:stamp) raised LookupError: no cats, in stamped/stage_0" in text
    )
    assert "pets_code.py" in text
