"""The pages on formats, engines and storage schemes name files, blocks and names that exist."""

from __future__ import annotations

import re

import pytest

from tests.contributor_guide.changes import ROOT

PAGES = {"engines.md": 2, "table-formats.md": 5, "storage-schemes.md": 1}
SOURCES = (
    "infra/engines",
    "infra/formats",
    "infra/reading",
    "infra/storage",
    "infra/integrity",
    "infra/upkeep",
    "infra/worker/spec.py",
    "planner/engines",
    "planner/formats",
    "planner/catalog.py",
    "planner/plan/stages.py",
)


@pytest.mark.parametrize(("page", "blocks"), PAGES.items())
def test_blocks_are_in_the_files(page: str, blocks: int) -> None:
    text = (ROOT / "docs" / "contributor-guide" / page).read_text(encoding="utf-8")
    found = re.findall(r"In `([^`]+)`[^\n]*:\n\n   ```python\n(.*?)   ```", text, re.S)
    assert len(found) == blocks
    for path, block in found:
        lines = [line.removeprefix("   ") for line in block.splitlines()]
        assert "\n".join(lines).rstrip() in (ROOT / path).read_text(encoding="utf-8"), block


@pytest.mark.parametrize("page", PAGES)
def test_files_and_names_exist(page: str) -> None:
    text = (ROOT / "docs" / "contributor-guide" / page).read_text(encoding="utf-8")
    spans = set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S)))
    paths = {span for span in spans if "/" in span and "<" not in span and "://" not in span}
    assert paths and not [path for path in paths if not (ROOT / path).exists()]
    files = [path for source in SOURCES for path in (ROOT / source, *(ROOT / source).rglob("*.py"))]
    code = "".join(path.read_text(encoding="utf-8") for path in files if path.is_file())
    names = {s for s in spans if re.fullmatch(r"[A-Z]\w*(\.\w+)?|_?[A-Z_]{4,}|\w+_\w+", s)}
    assert names
    missing = {name for name in names if name.rpartition(".")[2] not in code}
    assert not missing
