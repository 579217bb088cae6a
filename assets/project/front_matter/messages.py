"""Turns pydantic's errors into messages with a place in the front matter."""

import re
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from stagecoach.assets.project.front_matter.places import AT_KEY, Location, is_tag
from stagecoach.assets.project.front_matter.values import REFUSED
from stagecoach.assets.project.names import closest, did_you_mean

# Location, message, whether the key itself is meant.
Found = tuple[Location, str, bool]


def found_problems(error: ValidationError, model: type[BaseModel]) -> Iterator[Found]:
    """Every mistake of an error, with its location.

    Args:
        error: What pydantic raised.
        model: What it was validating.
    """
    items = error.errors(include_url=False)
    unknown = {
        tuple(item["loc"][:-1]): closest(str(item["loc"][-1]), _known_keys(model, item["loc"][:-1]))
        for item in items
        if item["type"] == "extra_forbidden"
    }
    for item in items:
        location = tuple(item["loc"])
        context = item.get("ctx", {})
        if item["type"] == REFUSED:
            for inner, message in context.get("problems", [((), context["message"])]):
                yield (*location, *inner), message, inner[-1:] == (AT_KEY,)
        elif item["type"] == "extra_forbidden":
            word = str(location[-1])
            message = f"unknown key '{word}'{did_you_mean(word, _known_keys(model, location[:-1]))}"
            yield location, message, True
        elif item["type"] == "missing":
            owner, key = _name(location[:-1]), location[-1]
            # A misspelled key is told once, as the unknown one.
            if unknown.get(location[:-1]) != key:
                yield location[:-1], f"{owner} needs the key '{key}'; add it", True
        elif item["type"] != "too_short" or not _has_inner(items, location):
            yield location, _message(item["type"], location, item["input"], context), False


def _has_inner(items: Sequence[ErrorDetails], location: Location) -> bool:
    """Whether an item of the list is wrong: then pydantic counts it as missing."""
    return any(
        len(i["loc"]) > len(location) and i["loc"][: len(location)] == location for i in items
    )


def _message(kind: str, location: Location, value: Any, context: dict[str, Any]) -> str:
    name = _name(location)
    match kind:
        case "literal_error":
            known = re.findall(r"'([^']*)'", str(context["expected"]))
            return f"{name} cannot be '{value}'{did_you_mean(str(value), known)}"
        case "string_type":
            advice = "" if isinstance(value, dict | list) else "; put it in quotes"
            return f"{name} must be a text, not {_shown(value)}{advice or '; write a text'}"
        case "int_type" | "float_type" | "int_from_float":
            return f"{name} must be a number, not {_shown(value)}; write it without quotes"
        case "bool_type":
            return f"{name} must be true or false, not {_shown(value)}; write one of them"
        case "tuple_type" | "list_type":
            return f"{name} must be a list, not {_shown(value)}; write [{_shown(value)}]"
        case "dict_type" | "mapping_type" | "model_type" | "model_attributes_type":
            return (
                f"{name} must be a mapping of keys to values, not {_shown(value)}; "
                "write 'key: value' lines below it"
            )
        case "greater_than_equal":
            return f"{name} must be at least {context['ge']}, not {value}; write a larger number"
        case "less_than_equal":
            return f"{name} must be at most {context['le']}, not {value}; write a smaller number"
        case "too_short" | "string_too_short":
            return f"{name} must not be empty; add a value, or remove it"
    return f"{name} cannot be {_shown(value)}; write another value"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, str | list | dict) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _name(location: Location) -> str:
    """`output.mode`, `item 2 of owners`."""
    parts = [p for p in location if not is_tag(p)]
    if parts and isinstance(parts[-1], int):
        return f"item {parts[-1] + 1} of {_name(tuple(parts[:-1]))}"
    # The union of a scalar has its members' names at the end of a location.
    texts = [str(p) for p in parts if not isinstance(p, int)]
    return ".".join(texts) or "the front matter"


# ---------------------------------------------------------------- which keys a mapping has


def _known_keys(model: type[BaseModel], location: Location) -> tuple[str, ...]:
    """The keys that a mapping at a location may have."""
    candidates: list[tuple[str | None, type[BaseModel]]] = [(None, model)]
    for part in location:
        if isinstance(part, int):
            continue
        if is_tag(part):
            candidates = [(tag, found) for tag, found in candidates if tag == part]
            continue
        inner = [found.model_fields.get(part) for _, found in candidates]
        candidates = [
            pair for field in inner if field is not None for pair in _models(field.annotation)
        ]
    return tuple(dict.fromkeys(key for _, found in candidates for key in found.model_fields))


def _models(
    annotation: Any, tag: str | None = None
) -> Iterator[tuple[str | None, type[BaseModel]]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield tag, annotation
        return
    tags = [m.tag for m in getattr(annotation, "__metadata__", ()) if isinstance(m, Tag)]
    for inner in typing.get_args(annotation):
        yield from _models(inner, tags[0] if tags else tag)
