"""Read YAML that people write: front matter, catalogs and settings files.

Everything that reads YAML of users goes through this module, because plain YAML is too trusting. It
drops the first of two equal keys silently. Its aliases can make a gigabyte of a few lines. Deep
nesting ends the process, where libyaml reads it. Here all of these are errors with a place.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

MAX_CHARACTERS = 8 << 20
"""Of a text."""
MAX_DEPTH = 100
"""Lists and mappings within one another."""
MAX_ALIASED = 10_000
"""Values that aliases may add to those that are written."""

_FAST_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STARTS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_ENDS = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


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


class LimitError(yaml.MarkedYAMLError):
    """YAML that is nested too deeply, or that aliases make too large."""


class UniqueKeyLoader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping of a node, as SafeLoader makes it."""
        for repeated in _repeated_in(node):
            raise yaml.constructor.ConstructorError(
                None, None, f"key {repeated.key!r} is given twice", repeated.mark
            )
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """The value of a node, as SafeLoader makes it."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:  # a date or a number that there is not
            raise yaml.constructor.ConstructorError(
                None, None, f"{_shortened(node)} is not a valid value: {error}", node.start_mark
            ) from None


def load_yaml(text: str) -> Any:
    """The value of a YAML text, in which no mapping holds a key twice.

    Raises:
        yaml.YAMLError: For text that is not YAML, a key given twice, or more than this module's
            limits allow.
    """
    node = compose_yaml(text)
    # A subclass of SafeLoader, so no object is ever built.
    return None if node is None else UniqueKeyLoader("").construct_document(node)


def compose_yaml(text: str) -> yaml.Node | None:
    """The tree of a YAML text, whose nodes know their places; None for an empty one.

    Raises:
        yaml.YAMLError: For text that is not YAML, or more than this module's limits allow.
    """
    if len(text) > MAX_CHARACTERS:
        raise yaml.YAMLError(f"the text has more than {MAX_CHARACTERS >> 20} Mi characters")
    _check_depth(text)
    try:
        # Ten times as fast where libyaml is there; its errors say less than those of Python.
        node: yaml.Node | None = yaml.compose(text, Loader=_FAST_LOADER)
    except yaml.YAMLError:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is not None:
        _check_aliases(node)
    return node


def _check_depth(text: str) -> None:
    """Refuse what a recursive reader of the text could not get to the end of."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_FAST_LOADER):
            if isinstance(event, _STARTS):
                depth += 1
                if depth > MAX_DEPTH:
                    raise _refused("this is nested too deeply; make it flatter", event.start_mark)
            elif isinstance(event, _ENDS):
                depth -= 1
    except LimitError:
        raise
    except yaml.YAMLError:
        return  # up to here it is flat enough; the reader says what is wrong


def _check_aliases(root: yaml.Node) -> None:
    """Refuse a tree that aliases make much larger than it was written, or endless."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    written = 0
    stack = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        key, children = id(node), _children(node)
        if is_done:
            open_nodes.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in children)
            written += 1
            if sizes[key] - written > MAX_ALIASED:
                text = "aliases make this too large; write it without aliases"
                raise _refused(text, node.start_mark)
        elif key in open_nodes:
            raise _refused("an alias refers to a value that holds it", node.start_mark)
        elif key not in sizes:
            open_nodes.add(key)
            stack.append((node, True))
            stack += [(child, False) for child in reversed(children)]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _refused(problem: str, mark: Any) -> LimitError:
    return LimitError(None, None, problem, mark)


def _shortened(node: yaml.Node) -> str:
    text = str(node.value)
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


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
