"""The JSON Schema of front matter, made of the models: for editors and other tools."""

import json
from typing import Any

from pydantic import BaseModel

from stagecoach.assets.project.front_matter.model import FrontMatter

SCHEMA_ID = "https://stagecoach.dev/schemas/query-file.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def front_matter_schema() -> dict[str, Any]:
    """The schema that front matter, read as YAML, has to fit."""
    return published_schema(FrontMatter, SCHEMA_ID, "Front matter of a Stagecoach query")


def published_schema(model: type[BaseModel], identity: str, title: str) -> dict[str, Any]:
    """The schema of a model as it is published.

    Args:
        model: What describes the YAML.
        identity: URL by which the schema is known.
        title: What the YAML is.
    """
    schema = _tidy(model.model_json_schema(mode="validation"))
    schema["title"] = title
    return {"$schema": _DIALECT, "$id": identity, **schema}


def schema_text() -> str:
    """The text of the published file."""
    return json.dumps(front_matter_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidy(node: Any) -> Any:
    """Without the titles and the nulls that stand for "not given", which only repeat the keys."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    # In a mapping of names, `title` and `default` are names.
    if "default" in node and node["default"] is None and "anyOf" in node:
        kept = [item for item in node["anyOf"] if item != {"type": "null"}]
        rest = {k: v for k, v in node.items() if k not in ("anyOf", "default")}
        node = {**kept[0], **rest} if len(kept) == 1 else {"anyOf": kept, **rest}
    return {
        key: {name: _tidy(item) for name, item in value.items()}
        if key in ("properties", "$defs")
        else _tidy(value)
        for key, value in node.items()
        if key != "title"
    }
