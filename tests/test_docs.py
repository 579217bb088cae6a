"""Test the documentation: its SQL is planned, its YAML loaded, its Python run, its tables complete."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import stagecoach
from docs import settings_reference
from stagecoach import tpch
from stagecoach.assets.definitions.components import StagecoachProject
from stagecoach.assets.project.front_matter import parse_front_matter
from stagecoach.assets.project.parameters import declared_parameters
from stagecoach.assets.query_tests.parse import parse_tests
from stagecoach.commands.main import cli
from stagecoach.infra.catalog.catalog import load_catalog
from stagecoach.infra.config.described import described_fields
from stagecoach.infra.config.settings import EngineSettings, load_configuration
from stagecoach.infra.storage.object_store import StorageOptions
from stagecoach.planner import plan_query
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.syntax.macros.expand import Macros
from stagecoach.planner.syntax.macros.expansion import SourceText
from tests.planner.tpch import sf10_catalog

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#]*)(?:#([^)]*))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}-{self.number}"


def blocks(language: str) -> list[Block]:
    return [
        Block(page, number, tag, text)
        for page in PAGES
        for number, (tag, text) in enumerate(_FENCE.findall(page.read_text(encoding="utf-8")))
        if tag == language
    ]


def anchors(page: Path) -> set[str]:
    """Names of a page's headings in links, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def option_names(page: str, heading: str) -> set[str]:
    """Names in the first column of the table below a heading."""
    text = (ROOT / "docs" / "user-guide" / page).read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_pages_have_blocks_of_each_kind() -> None:
    counts = {language: len(blocks(language)) for language in ("sql", "python", "yaml")}
    assert min(counts.values()) >= 3, counts


def is_macros(block: Block) -> bool:
    return block.text.startswith("CREATE ")


@pytest.mark.parametrize("block", blocks("sql"), ids=str)
def test_sql_is_planned(block: Block) -> None:
    """Macros of a page are those of its queries."""
    declared = [b.text for b in blocks("sql") if b.page == block.page and is_macros(b)]
    macros = Macros.read([SourceText("".join(declared), str(block.page))])
    if is_macros(block):
        return
    text = macros.expand(block.text).text
    parameters = declared_parameters(parse_front_matter(text))
    graph = plan_query(text, sf10_catalog(), parameters=parameters)
    # The pages show one query that is not staged, and say so.
    assert (graph.fallback_reason is not None) == ("WITH RECURSIVE" in block.text)


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_is_of_a_known_kind(block: Block, tmp_path: Path) -> None:
    """A catalog, a file of settings or of tests, a run's configuration, or a component."""
    content = yaml.safe_load(block.text)
    if "type" in content:
        assert content["type"] == "stagecoach.StagecoachProject"
        known = {field.name for field in dataclasses.fields(StagecoachProject)}
        assert set(content["attributes"]) <= known
        return
    if set(content) == {"execution"}:
        return
    if "tests" in content:
        parse_tests(block.text, block.page)
        return
    file = tmp_path / "catalog.yaml"
    file.write_text(block.text, encoding="utf-8")
    if "tables" not in content:
        load_configuration(file, environment={})  # an unknown name would be refused
        return
    assert set(load_catalog(file).table_names()) == set(content["tables"])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = [
        (page.parent / target if target else page, anchor)
        for target, anchor in _LINK.findall(page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert [str(target) for target, _ in links if not target.exists()] == []
    assert [link for link in links if link[1] and link[1] not in anchors(link[0])] == []


def test_every_page_of_the_site_is_in_its_navigation() -> None:
    named = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES if page.parent != ROOT]
    assert sorted(named) == sorted(pages), "`nav` in mkdocs.yml lists the pages of docs/"


def test_the_reference_has_every_public_name() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    documented = {
        name
        for page in pages
        for name in re.findall(r"^::: stagecoach\.(\w+)$", page.read_text(), re.MULTILINE)
    }
    assert documented == set(stagecoach._MODULES)


def test_every_planner_option_is_documented() -> None:
    known = {f.name for f in dataclasses.fields(PlannerOptions)}
    assert option_names("options.md", "Planner options") == known


@pytest.mark.parametrize("model", [EngineSettings, StorageOptions, PlannerOptions])
def test_every_setting_is_documented(model: type[Any]) -> None:
    silent = [field.name for field in described_fields(model) if not field.meaning]
    assert not silent, f"the docstring of {model.__name__} does not say what these mean"


def test_the_reference_of_settings_is_made_from_the_models() -> None:
    assert settings_reference.PAGE.read_text(encoding="utf-8") == settings_reference.page(), (
        "run `make settings`"
    )


def test_every_command_and_option_is_documented() -> None:
    text = (ROOT / "docs" / "user-guide" / "command-line.md").read_text(encoding="utf-8")
    sections = {
        part.split(maxsplit=2)[1]: part
        for part in re.split(r"^## (?=stagecoach )", text, flags=re.MULTILINE)[1:]
    }
    context = click.Context(cli)
    assert set(sections) == set(cli.list_commands(context))
    for name in sections:
        command = cli.get_command(context, name)
        assert command is not None
        below = command.commands.values() if isinstance(command, click.Group) else ()
        for part in (command, *below):
            assert part is command or f"{name} {part.name}" in sections[name]
            for option in part.params:
                if isinstance(option, click.Option) and option.name != "debug":
                    longest = max(option.opts, key=len)
                    assert longest in sections[name], f"{name} {longest}"


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = re.findall(r"(?:`|\$ )make ([a-z-]+)", page.read_text(encoding="utf-8"))
        assert set(named) <= targets, page.name


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the repository, with small TPC-H data."""
    folder = tmp_path_factory.mktemp("docs")
    tpch.generate(folder / "data" / "tpch", 0.01)
    shutil.copytree(ROOT / "pipelines", folder / "pipelines")
    return folder


_RUN_PAGES = """
import json, pathlib
for page, text in json.loads(pathlib.Path("blocks.json").read_text(encoding="utf-8")):
    exec(compile(text, page, "exec"), {"__name__": page})
"""


@pytest.mark.slow
@pytest.mark.spark
def test_python_runs(project: Path) -> None:
    """All blocks in one process, so that the JVM starts once; a page's blocks share their names."""
    pages: dict[str, str] = {}
    for block in blocks("python"):
        if block.page.name == "flight.md":
            continue  # needs a server; tests/stagecoach/flight/test_guide.py runs it
        page = str(block.page.relative_to(ROOT))
        pages[page] = f"{pages.get(page, '')}\n{block.text}"
    (project / "blocks.json").write_text(json.dumps(list(pages.items())), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, "-c", _RUN_PAGES],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=270,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "INDIA" in done.stdout
