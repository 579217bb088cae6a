"""The JSON Schema of catalog files, made of the formats' keys: for editors.

It knows keys, not all rules about their values; those are checked when a catalog is loaded.
"""

from __future__ import annotations

import json
from typing import Any

from stagecoach.infra.formats import names
from stagecoach.infra.formats.registry import table_format

SCHEMA_ID = "https://stagecoach.dev/schemas/catalog.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MEANINGS = {
    "location": "A file, a folder, a glob or a URL; relative to the folder of this file.",
    "format": "Format of the files; Parquet by default.",
    "kind": "What the table is, if not a set of files.",
    "columns": "Names and types of the columns, with NOT NULL and comments.",
    "options": "How the files are read, by the names of Spark's options.",
    "table": "Name of the table in its catalog, with its namespace.",
    "catalog": "Properties of the catalog that has the table.",
    "primary_key": "Columns of which the table shows the latest row for each value.",
    "time_column": "Column that says which row of a key is the latest.",
}


def catalog_schema() -> dict[str, Any]:
    """The schema that a catalog file, read as YAML, has to fit."""
    formats = {name: table_format(name).keys for name in names.BY_FORMAT.names}
    kinds = {name: table_format(name).keys for name in names.BY_KIND.names}
    keys = ["location", "format", "kind"]
    for own in (*formats.values(), *kinds.values()):
        keys += [key for key in own if key not in keys]
    properties: dict[str, Any] = {
        key: {"description": _MEANINGS[key]} if key in _MEANINGS else {} for key in keys
    }
    properties["location"] |= {"type": "string", "minLength": 1}
    properties["format"] |= {"enum": list(formats)}
    properties["kind"] |= {"enum": [names.FILES, *kinds]}
    default = names.BY_FORMAT.names[0]
    rules = [
        *(
            _keys_of("format", name, ("location", "kind", "format", *own), default)
            for name, own in formats.items()
        ),
        *(
            _keys_of("kind", name, ("location", "kind", *own), names.FILES)
            for name, own in kinds.items()
        ),
    ]
    table = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "allOf": rules,
    }
    return {
        "$schema": _DIALECT,
        "$id": SCHEMA_ID,
        "title": "Catalog of Stagecoach",
        "type": "object",
        "required": ["tables"],
        "additionalProperties": False,
        "properties": {
            "tables": {
                "description": "The tables by name.",
                "type": ["object", "null"],
                "additionalProperties": table,
            },
            "functions": {"description": "Python functions of the project, by name."},
            "macros": {"description": "The folder of the project's macros."},
        },
    }


def _keys_of(selector: str, name: str, keys: tuple[str, ...], default: str) -> dict[str, Any]:
    """The keys that a table of one format or kind may have."""
    condition: dict[str, Any] = {"properties": {selector: {"const": name}}}
    if name != default:
        condition["required"] = [selector]
    elif selector == "format":
        # A table of a kind has no format.
        condition["properties"]["kind"] = {"const": names.FILES}
    return {"if": condition, "then": {"propertyNames": {"enum": list(keys)}}}


def schema_text() -> str:
    """The text of the schema as a file."""
    return json.dumps(catalog_schema(), indent=2, ensure_ascii=False) + "\n"
