"""YAML that people write: in, text; out, values and their places, with no key given twice.

Plain YAML drops the first of two equal keys silently. Everything that reads YAML of users goes
through this module.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class RepeatedKey:
    """A key that its mapping holds before already.

    Args:
        key: The key's text.
        mark: Where it is given again.
        first: Where it was given first.
    """

    key: str
    mark: yaml.Mark
    first: yaml.Mark


class UniqueKeyLoader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of a node, as SafeLoader makes it."""
        for repeated in _repeated_in(node):
            raise yaml.constructor.ConstructorError(
                None, None, f"key {repeated.key!r} is given twice", repeated.mark
            )
        return super().construct_mapping(node, deep)


def load_yaml(text: str) -> Any:
    """The value of a YAML text, in which no mapping holds a key twice.

    Raises:
        yaml.YAMLError: For text that is no YAML, or a key given twice.
    """
    # A subclass of SafeLoader, so no object is ever built.
    return yaml.load(text, Loader=UniqueKeyLoader)


def compose_yaml(text: str) -> yaml.Node | None:
    """The tree of a YAML text, whose nodes know their places; None for an empty one.

    Raises:
        yaml.YAMLError: For text that is no YAML.
    """
    try:
        # Ten times as fast where libyaml is there; its errors say less than those of Python.
        node: yaml.Node | None = yaml.compose(text, Loader=_FAST_LOADER)
    except yaml.YAMLError:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    return node


def repeated_keys(root: yaml.Node) -> list[RepeatedKey]:
    """All keys that are given again, in the order of the text."""
    found: list[RepeatedKey] = []
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        # An alias is the node that it names, so a tree can hold a node twice, or itself.
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            found += _repeated_in(node)
            waiting += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
    return sorted(found, key=lambda r: (r.mark.line, r.mark.column))


def _repeated_in(node: yaml.MappingNode) -> Iterator[RepeatedKey]:
    seen: dict[str, yaml.Mark] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in seen:
            yield RepeatedKey(key.value, key.start_mark, seen[key.value])
        else:
            seen[key.value] = key.start_mark
