"""The one place that walks trees, for plans and expressions alike.

A transformation returns the same object where nothing changed, so "changed" is `new is not old`. No
walk recurses: depth is bounded by memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, Self, TypeVar

from stagecoach.planner.limits.deadline import check_deadline


class Tree(Protocol):
    """What the walks need of a node."""

    @property
    def children(self) -> tuple[Self, ...]:
        """Direct children, in a fixed order."""
        ...

    def with_children(self, new: tuple[Self, ...]) -> Self:
        """A copy with other children; `self` if all of them are the same objects."""
        ...


N = TypeVar("N", bound=Tree)
_NODES_PER_CHECK = 50


def same(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """Whether two child tuples hold the very same objects."""
    return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))


def walk(root: N) -> Iterator[N]:
    """Every node, parents before children, left to right."""
    stack = [root]
    countdown = _NODES_PER_CHECK
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children))
        countdown -= 1
        if not countdown:
            check_deadline()
            countdown = _NODES_PER_CHECK


def depth(root: N) -> int:
    """Number of nodes on the longest path from the root to a leaf."""
    deepest = 0
    stack = [(root, 1)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        stack.extend((child, level + 1) for child in node.children)
    return deepest


def transform_up(root: N, fn: Callable[[N], N]) -> N:
    """Rebuild the tree from the leaves; `fn` sees a node whose children are already rebuilt."""
    return _rebuilt(root, None, fn)


def transform_down(root: N, fn: Callable[[N], N]) -> N:
    """Rebuild the tree from the root; `fn` runs on a node before its (new) children are visited."""
    return _rebuilt(root, fn, None)


def _rebuilt(root: N, on_entry: Callable[[N], N] | None, on_exit: Callable[[N], N] | None) -> N:
    results: list[N] = []
    stack: list[tuple[N, bool]] = [(root, False)]
    check_deadline()
    while stack:
        node, expanded = stack.pop()
        if not expanded:
            if on_entry is not None:
                node = on_entry(node)
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
            continue
        count = len(node.children)
        if count:
            new = tuple(results[-count:])
            del results[-count:]
            node = node.with_children(new)
        results.append(node if on_exit is None else on_exit(node))
    return results[0]
