"""How a run went beside its plan: the numbers, the marks, the text, the page."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from stagecoach.assets.report.analysis import Analysis, Comparison, analyze_result, compared
from stagecoach.assets.report.dag_layout import layout
from stagecoach.assets.report.metadata import StageMetadata
from stagecoach.assets.report.page import analysis_page
from stagecoach.assets.report.text import analysis_json, analysis_text, analysis_yaml
from stagecoach.commands.main import cli
from stagecoach.planner.plan.stages import StageGraph
from stagecoach.planner.planning import plan_query
from stagecoach.planner.tree import walk
from tests.planner.catalogs import SALES
from tests.planner.tpch import FORCED, NAMES, tpch_graph

STARTED = 1_700_000_000.0


@dataclass
class FakeRun:
    """A finished run of a plan, without Spark: what `analyze_result` reads of one."""

    graph: StageGraph
    rows: dict[int, int] = field(default_factory=dict)
    reused: frozenset[int] = frozenset()
    deferred: frozenset[int] = frozenset()
    tasks: int = 4
    timed: bool = True
    adaptive: tuple[dict[str, str], ...] = ()
    run_id: str = "run-1"

    @property
    def stages(self) -> tuple[StageMetadata, ...]:
        return tuple(
            StageMetadata(
                rows=self.manifest(i).num_rows,
                reused=i in self.reused,
                deferred="its input is" if i in self.deferred else None,
                engine="duckdb",
                fingerprint=f"f{i}",
                skew=2.5,
            )
            for i in range(len(self.graph.stages))
        )

    @property
    def num_rows(self) -> int:
        return self.manifest(len(self.graph.stages) - 1).num_rows

    def manifest(self, stage_id: int) -> Any:
        stage = self.graph.stages[stage_id]
        rows = self.rows.get(stage_id, stage.estimated_rows)
        nodes = list(walk(stage.fragment))
        read = {id(n): rows for n, rows in zip(nodes, stage.operator_rows, strict=False)}
        leaves = [read.get(id(leaf), 0) // self.tasks for leaf in stage.leaves]
        tasks = []
        for index in range(self.tasks):
            tasks.append(
                {
                    "rows_in": leaves,
                    "total_seconds": 0.1 * (index + 1),
                    "read_seconds": 0.01,
                    "write_seconds": 0.02,
                    "peak_memory_bytes": 1 << 20,
                    "host": "here",
                    "pid": 7 + index,
                }
            )
            if self.timed:
                tasks[-1]["started_at"] = STARTED + stage_id + 0.05 * index
        files = [SimpleNamespace(num_rows=rows // self.tasks, num_bytes=100)] * self.tasks
        return SimpleNamespace(
            num_rows=rows,
            num_bytes=100 * self.tasks,
            num_partitions=stage.output.num_partitions,
            partition_bytes=(100,) * stage.output.num_partitions,
            files=files,
            metrics={"tasks": tasks, "adaptive": self.adaptive},
            fingerprint=f"f{stage_id}",
        )


def analyzed(run: FakeRun) -> Analysis:
    count = len(run.graph.stages)
    spans = {i: (STARTED + i, STARTED + i + 0.9) for i in range(count)}
    return analyze_result(run, spans, STARTED - 1, 5.0)


def q03(**given: Any) -> Analysis:
    return analyzed(FakeRun(tpch_graph("q03", FORCED), **given))


# ---------------------------------------------------------------- numbers


def test_rows_are_known_where_they_were_counted() -> None:
    stages = q03(rows={0: 111, 3: 333}).stages
    leaf = {op.line.split(":")[0]: op.rows.actual for op in stages[0].operators}
    # Written by the stage, the same below a projection; what the tasks read; nothing between.
    assert leaf == {"ProjectionExec": 111, "FilterExec": 111, "ScanExec": 60_057_200}
    join = [(op.line.split(":")[0], op.rows.actual) for op in stages[4].operators]
    assert join[0] == ("SortExec", 10)
    assert ("HashJoinExec", None) in join
    inputs = {op.line.split("]")[0]: op.rows.actual for op in stages[4].operators[-2:]}
    assert inputs == {"[Stage 0": 111, "[Stage 3": 333}


def test_decisions_by_real_sizes_are_told() -> None:
    analysis = q03(adaptive=({"kind": "skew", "text": "partition 3 split among 4 tasks"},))
    assert "│ -- skew: partition 3 split among 4 tasks" in analysis_text(analysis)
    told = json.loads(analysis_json(analysis))["stages"][0]["decisions"]
    assert told == [{"kind": "skew", "text": "partition 3 split among 4 tasks"}]


def test_shares_are_of_the_time_of_this_run() -> None:
    analysis = q03(reused=frozenset({0, 1}))
    assert sum(stage.share for stage in analysis.stages) == pytest.approx(1.0)
    assert [stage.how for stage in analysis.stages[:3]] == ["reused", "reused", "computed"]
    assert analysis.stages[0].share == 0
    assert analysis.stages[2].task_seconds() == pytest.approx((0.1, 0.25, 0.4))
    assert analysis.stages[2].seconds == pytest.approx(0.9)
    assert analysis.stages[2].skew == 2.5
    assert analysis.stages[5].skew is None


@pytest.mark.parametrize(
    ("estimated", "actual", "verdict"),
    [
        (100, 1000, ""),
        (100, 1001, "10x too low"),
        (1000, 100, ""),
        (2800, 100, "28x too high"),
        (0, 0, ""),
        (1, 0, ""),
        (0, 50, "50x too low"),
        (None, 50, ""),
        (50, None, ""),
    ],
)
def test_verdicts(estimated: int | None, actual: int | None, verdict: str) -> None:
    assert compared(estimated, actual, 1).verdict == verdict
    assert Comparison(estimated=estimated, actual=actual).verdict == ""


def test_far_off_estimates_are_marked_once_and_listed() -> None:
    analysis = q03(rows={3: 1_458_601 * 40})
    (stage, operator, rows), *more = analysis.far_off()
    assert stage.stage.stage_id == 3
    assert operator is not None
    assert operator.line.startswith("ProjectionExec")
    assert rows.verdict == "40x too low"
    # The join below has as many rows as the projection; the stage that reads them says nothing.
    assert [s.stage.stage_id for s, _, _ in more] == [3]
    text = analysis_text(analysis)
    assert text.count("<<< estimate 40x too low") == 2
    assert "Estimates of rows that were off by more than 10x:\n  stage 3: 58,344,040 rows" in text
    assert "No estimate of rows was off" in analysis_text(q03())


def test_rows_of_each_task_are_no_wrong_estimate() -> None:
    graph = plan_query("SELECT status, count(*) AS n FROM orders GROUP BY status", SALES, FORCED)
    partial = graph.stages[0]
    wide = {0: partial.estimated_rows * 4 * 9}
    assert not analyzed(FakeRun(graph, rows=wide)).far_off()
    wider = {0: partial.estimated_rows * 4 * 11}
    assert analyzed(FakeRun(graph, rows=wider)).far_off()
    # The sort of stage 4 keeps ten rows in each task.
    assert not q03(rows={4: 40}).far_off()


def test_a_query_that_spark_ran_whole_has_no_operators() -> None:
    sql = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r"
    analysis = analyzed(FakeRun(plan_query(sql, SALES), rows={0: 5}))
    assert analysis.stages[0].operators == ()
    assert "WITH RECURSIVE" in analysis_text(analysis)
    assert "WITH RECURSIVE" in analysis_page(analysis, "now")


def test_a_deferred_stage_has_no_numbers() -> None:
    analysis = q03(deferred=frozenset({2}))
    assert analysis.stages[2].how == "deferred"
    assert analysis.stages[2].rows.actual is None
    assert "deferred to the last stage: its input is" in analysis_text(analysis)
    assert "deferred" in analysis_page(analysis, "now")


def test_json_and_yaml_hold_the_same() -> None:
    analysis = q03(rows={3: 1_458_601 * 40})
    data = json.loads(analysis_json(analysis))
    assert yaml.safe_load(analysis_yaml(analysis)) == data
    assert data["format_version"] == 1
    assert data["stages"][3]["rows"]["far_off"] is True
    assert data["stages"][3]["tasks"][0]["started_at"] == STARTED + 3
    assert len(data["stages"]) == 6


def test_the_table_has_a_line_for_each_stage() -> None:
    lines = analysis_text(q03()).splitlines()
    assert lines[0] == "q03: 10 rows in 5.00 s, 6 stages, 24 tasks, the first after 1.00 s"
    table = lines[2:9]
    assert table[0].split()[:5] == ["stage", "engine", "how", "time", "share"]
    assert [line.split()[0] for line in table[1:]] == ["0", "1", "2", "3", "4", "5"]


# ---------------------------------------------------------------- the page


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("href", "src", "xlink:href", "action"):
                self.links.append(value or "")
            if name == "id":
                self.ids.add(value or "")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_needs_nothing_else(name: str) -> None:
    text = analysis_page(analyzed(FakeRun(tpch_graph(name, FORCED))), "2024-01-01 10:00")
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "form"} & set(page.tags)
    assert "http" not in text.split("</style>")[1]
    assert "@import" not in text
    assert "url(" not in text.replace("url(#tip)", "")
    assert "default-src 'none'" in text
    assert {link for link in page.links if not link.startswith("#")} == set()
    assert {link.removeprefix("#") for link in page.links} <= page.ids
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(drawing)
    assert page.tags.count("svg") == 3


def test_the_page_shows_every_stage_and_task() -> None:
    text = analysis_page(q03(rows={3: 1_458_601 * 40}), "2024-01-01 10:00")
    for number in range(6):
        assert f">Stage {number}</text>" in text
    graph, timeline, lineage = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert graph.count('class="edge"') == 5
    assert timeline.count("peak memory") == 2 * 24
    assert "40x too low" in graph
    assert lineage.count('class="edge value"') == 5
    assert "lineitem.l_extendedprice → revenue</title>" in lineage
    assert "customer.c_mktsegment → all rows: filter</title>" in lineage
    # Three tasks of a stage overlap, those of the next one come later.
    slots = re.findall(r"<text [^>]*>(slot \d+)<", timeline)
    assert slots == ["slot 1", "slot 2", "slot 3"]


def test_what_a_stage_does_is_not_cut_in_the_timeline() -> None:
    text = analysis_page(analyzed(FakeRun(tpch_graph("q18", FORCED))), "now")
    timeline = re.findall(r"<svg.*?</svg>", text, re.DOTALL)[1]
    places = re.findall(r'<text class="row" x="14" y="(\d+)">(.*?)<title>', timeline)
    shown = " ".join(line for _, line in places)
    assert "stage 3: scan lineitem, partial aggregate, filter" in shown
    assert "stage 4: final aggregate, filter, stage_2 semi join stage_3" in shown
    lines = [int(y) for y, _ in places]
    assert all(after - before >= 15 for before, after in itertools.pairwise(lines))


def test_the_page_says_what_is_there_and_nothing_else() -> None:
    found = q03(deferred=frozenset({4}))
    stages = [replace(s, tasks=()) if s.how == "deferred" else s for s in found.stages]
    text = analysis_page(replace(found, stages=tuple(stages)), "now")
    assert "<h1>q03</h1>" in text
    assert "q03: 10 rows" not in text  # what is below the heading is about it
    assert ">deferred</text>" in text
    assert "0 tasks, deferred" not in text
    assert "merge top 10 → result, computed" in text
    assert "chosen by" not in text  # no column has rows of its own
    own = "SELECT max(total) FILTER (WHERE status = 'F') AS m FROM orders"
    assert "chosen by" in analysis_page(analyzed(FakeRun(plan_query(own, SALES))), "now")


def test_sql_is_text_on_the_page() -> None:
    sql = "SELECT '</pre><script>alert(1)</script>' AS `<b>`, count(*) AS n FROM orders WHERE total < 5"
    text = analysis_page(analyzed(FakeRun(plan_query(sql, SALES, name="<i>x"))), "<now>")
    page = Page(text)
    assert "script" not in page.tags
    assert "&lt;script&gt;" in text
    assert "`<b>`" not in text
    assert "<i>x" not in text
    assert "<now>" not in text


def test_runs_of_before_have_no_times() -> None:
    text = analysis_page(q03(timed=False), "now")
    assert "No task ran" in text
    everything = frozenset(range(6))
    assert "No task ran" in analysis_page(q03(reused=everything), "now")


@pytest.mark.parametrize("name", NAMES)
def test_boxes_do_not_overlap_and_rows_flow_down(name: str) -> None:
    graph = tpch_graph(name, FORCED)
    inputs = {stage.stage_id: stage.inputs for stage in graph.stages}
    found = layout(inputs)
    assert set(found.places) == set(inputs)
    for stage, sources in inputs.items():
        for source in sources:
            assert found.places[source][1] < found.places[stage][1]
            bends = [layer for _, layer in found.bends[source, stage]]
            assert bends == list(range(found.places[source][1] + 1, found.places[stage][1]))
    for layer in range(found.layers):
        row = sorted(x for x, y in found.places.values() if y == layer)
        assert all(b - a >= 0.999 for a, b in itertools.pairwise(row))
        assert all(0 <= x <= found.columns for x in row)


def test_a_graph_of_one_stage_has_one_place() -> None:
    assert layout({0: ()}).places == {0: (0.0, 0)}
    assert layout({}).layers == 1


# ---------------------------------------------------------------- the command


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pets").mkdir()
    for part in range(2):
        kinds = ["cat", "dog", "cat", "cow"] * 50
        table = pa.table({"id": pa.array(range(200), pa.int32()), "kind": kinds})
        pq.write_table(table, tmp_path / "pets" / f"{part}.parquet")
    (tmp_path / "catalog.yaml").write_text("tables:\n  pets: {location: pets}\n")
    (tmp_path / "kinds.sql").write_text("SELECT kind, count(*) AS n FROM pets GROUP BY kind")
    return tmp_path


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--html", "x.html"), "--html needs --analyze"),
        (("--fresh",), "--fresh needs --analyze"),
        (("--analyze", "--plan", "logical"), "--analyze shows stages"),
        (("--analyze", "--lineage"), "--lineage shows where columns come from"),
        (("--lineage", "--plan", "physical"), "--lineage shows where columns come from"),
        (("--lineage", "--format", "dot"), "--lineage shows text, json, yaml, mermaid, not dot"),
        (("--analyze", "--format", "dot"), "--analyze shows text, json, yaml, not dot"),
    ],
)
def test_usage(project: Path, args: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, ["explain", "kinds.sql", "--catalog", "catalog.yaml", *args])
    assert result.exit_code == 2
    assert message in result.stderr


def test_lineage_is_shown(project: Path) -> None:
    args = ["explain", "kinds.sql", "--catalog", "catalog.yaml", "--lineage"]
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("lineage of kinds\n\n| column | values come from |")
    assert "| kind   | pets.kind        |" in result.stdout
    assert result.stdout.endswith("\nrows: pets.kind (group)\n")
    detailed = CliRunner().invoke(cli, [*args, "--details"]).stdout
    assert "stage 0: " in detailed


SCRIPT = """
import json, sys
from pathlib import Path
import stagecoach
from click.testing import CliRunner
from stagecoach.commands.main import cli

def invoke(*args):
    result = CliRunner().invoke(cli, [*args, "--catalog", "catalog.yaml", "--storage", "st"])
    assert result.exit_code == 0, result.output
    return result.stdout

options = ["--set", "planner.force_distribution=true", "--set", "planner.num_partitions=2"]
options += ["--master", "local[2]", "--set", "engine.min_task_bytes=1", "-q"]
options += ["--set", "engine.target_task_bytes=1"]
explain = ["explain", "kinds.sql", "--analyze", *options]
found = {
    "first": json.loads(invoke(*explain, "--format", "json", "--html", "run.html")),
    "again": invoke(*explain),
    "note": CliRunner().invoke(cli, [*explain, "--catalog", "catalog.yaml", "--storage", "st"]).stderr,
    "explained": invoke("query", "explained.sql", "--format", "json"),
}
settings = {"master": "local[2]"}
with stagecoach.connect("catalog.yaml", "st", settings=settings) as session:
    from stagecoach.assets.plans.files import compile_query
    from stagecoach.assets.project.queries import Query

    sql = "SELECT kind, max(id) AS top FROM pets GROUP BY kind ORDER BY kind"
    plan = compile_query(Query(name="tops", sql=sql), session.catalog, session.options)
    Path("tops.json").write_text(plan.to_text())
    found["plan"] = session.run(session.load("tops.json")).to_arrow().to_pylist()
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_real_run_is_analyzed_and_a_compiled_plan_runs(project: Path) -> None:
    (project / "explained.sql").write_text("EXPLAIN SELECT kind FROM pets")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    leaf, head = found["first"]["stages"][0], found["first"]["stages"][-1]
    assert leaf["how"] == "computed"
    assert len(leaf["tasks"]) == 2
    assert {task["seconds"] > 0 and task["started_at"] > 1e9 for task in leaf["tasks"]} == {True}
    scan = leaf["operators"][-1]
    assert (scan["operator"].split(":")[0], scan["rows"]["actual"]) == ("ScanExec", 400)
    assert leaf["rows"]["actual"] == 6
    assert head["rows"]["actual"] == found["first"]["rows"] == 3
    assert "(2 reused)" in found["again"].splitlines()[0]
    assert found["note"].endswith(
        "note: 2 of 2 stages were reused, with the times of an earlier run; --fresh runs every stage\n"
    )
    assert "Content-Security-Policy" in (project / "run.html").read_text()
    assert json.loads(found["explained"])["plan"].startswith("query explained: 1 stage\n")
    assert found["plan"] == [
        {"kind": "cat", "top": 198},
        {"kind": "cow", "top": 199},
        {"kind": "dog", "top": 197},
    ]
