"""What `stagecoach init` writes for VS Code: schemas, snippets, and a task that checks queries.

catalog.yaml, tests/*.yaml    completed and checked by JSON Schema (the extension for YAML)
front matter in SQL           no editor knows YAML in a comment of SQL: its keys are snippets,
and `stagecoach check` marks what is wrong
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from stagecoach.assets.project.front_matter.schema import front_matter_schema
from stagecoach.assets.query_tests.schema import schema_text as tests_schema_text
from stagecoach.infra.catalog.schema import schema_text as catalog_schema_text

FOLDER = PurePosixPath(".vscode")
_SCHEMAS = FOLDER / "schemas"
_CATALOG = _SCHEMAS / "catalog.schema.json"
_TESTS = _SCHEMAS / "query-tests.schema.json"


def editor_files() -> Iterator[tuple[PurePosixPath, str]]:
    """Yield the files for VS Code, with their texts."""
    yield _CATALOG, catalog_schema_text()
    yield _TESTS, tests_schema_text()
    yield FOLDER / "settings.json", _json(_settings())
    yield FOLDER / "extensions.json", _json({"recommendations": ["redhat.vscode-yaml"]})
    yield FOLDER / "stagecoach.code-snippets", _json(_snippets())
    yield FOLDER / "tasks.json", _json(_tasks())


def _settings() -> dict[str, Any]:
    return {
        "yaml.schemas": {
            f"./{_CATALOG}": ["**/pipelines/catalog.yaml"],
            f"./{_TESTS}": ["**/pipelines/tests/*.yaml"],
        }
    }


def _snippets() -> dict[str, Any]:
    """A snippet for each key of front matter, for SQL files."""
    found: dict[str, Any] = {
        "Stagecoach: front matter": {
            "scope": "sql",
            "prefix": "stagecoach",
            "body": ["/*", "description: $1", "$0", "*/"],
            "description": "The leading comment that describes a query, in YAML",
        }
    }
    for key, schema in front_matter_schema()["properties"].items():
        found[f"Stagecoach: {key}"] = {
            "scope": "sql",
            "prefix": key,
            "body": [f"{key}: $0"],
            "description": schema.get("description", f"{key} of a Stagecoach query"),
        }
    return found


def _tasks() -> dict[str, Any]:
    return {
        "version": "2.0.0",
        "tasks": [
            {
                "label": "stagecoach check",
                "type": "shell",
                "command": "stagecoach check",
                "group": "build",
                "presentation": {"reveal": "silent"},
                "problemMatcher": {
                    "owner": "stagecoach",
                    "fileLocation": ["relative", "${workspaceFolder}"],
                    "severity": "error",
                    # As `stagecoach check` prints them.
                    "pattern": {
                        "regexp": "^(.+?):(\\d+):(\\d+): (.*)$",
                        "file": 1,
                        "line": 2,
                        "column": 3,
                        "message": 4,
                    },
                },
            }
        ],
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
