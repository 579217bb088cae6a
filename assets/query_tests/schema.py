"""The JSON Schema of files of tests, made of the models: for editors and other tools."""

import json
from typing import Any

from stagecoach.assets.project.front_matter.schema import published_schema
from stagecoach.assets.query_tests.model import Expect, Given, TestFile

SCHEMA_ID = "https://stagecoach.dev/schemas/query-tests.schema.json"


def tests_schema() -> dict[str, Any]:
    """The schema that a file of tests has to fit."""
    schema = published_schema(TestFile, SCHEMA_ID, "Tests of a Stagecoach query")
    definitions = schema["$defs"]
    for model in (Given, Expect):
        name = model.__name__
        mapping = f"{name}Mapping"
        definitions[mapping] = definitions[name]
        # A list alone is the rows.
        definitions[name] = {
            "description": definitions[mapping]["description"],
            "anyOf": [
                {"type": "array", "items": {"type": "object"}},
                {"$ref": f"#/$defs/{mapping}"},
            ],
        }
    return schema


def schema_text() -> str:
    """The text of the published file."""
    return json.dumps(tests_schema(), indent=2, ensure_ascii=False) + "\n"
