r"""Translate Java's regular expressions into RE2 where both mean the same.

Both take the leftmost match and prefer the first alternative. Constructs that differ are spelled
out (`.`, `\s`, `$`) or refused: look-around, back references, possessive and nested empty
repeats, `\b`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from stagecoach.planner.functions.spell_strings import int_of, text_of
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call

_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"
# The same for texts that end in a return and a line feed, between which `$` does not match in Java.
_END_OF_LINE = r"(?:\r\n)?\z"
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0B\f\r"}
_CONTROLS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_SPECIAL = frozenset("\\^$.|?*+()[]{}")


class _NotAlike(Exception):
    """The pattern has something that RE2 means in another way."""


@dataclass
class _Translation:
    pattern: str
    position: int = 0
    groups: int = 0
    anchors: set[str] = field(default_factory=set)

    def peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def take(self) -> str:
        char = self.peek()
        self.position += 1
        return char

    def alternatives(self, depth: int) -> tuple[str, bool]:
        """Text of `a|b|c`, and whether it can match nothing."""
        parts: list[str] = []
        empty = False
        while True:
            text, nothing = self._sequence(depth)
            parts.append(text)
            empty = empty or nothing
            if self.peek() != "|":
                return "|".join(parts), empty
            if depth == 0 and self.anchors:
                raise _NotAlike("an anchor beside alternatives")
            self.take()

    def _sequence(self, depth: int) -> tuple[str, bool]:
        texts: list[str] = []
        empty = True
        while self.peek() not in ("", "|", ")"):
            text, nothing = self._atom(depth, first=not texts)
            text, nothing = self._quantified(text, nothing)
            texts.append(text)
            empty = empty and nothing
        return "".join(texts), empty

    def _atom(self, depth: int, *, first: bool) -> tuple[str, bool]:
        char = self.take()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class(), False
        if char == "\\":
            return self._escape(inside=False), False
        if char == ".":
            return _DOT, False
        if char == "^":
            if depth or not first:
                raise _NotAlike("^ inside a pattern")
            self.anchors.add("^")
            return "^", True
        if char == "$":
            if depth or self.peek():
                raise _NotAlike("$ inside a pattern")
            self.anchors.add("$")
            return _END, True
        if char in "?*+{})]":
            raise _NotAlike(f"a lone '{char}'")
        return re.escape(char) if char in "\\^$.|?*+()[]{}-" else char, False

    def _group(self, depth: int) -> tuple[str, bool]:
        opening = "("
        if self.pattern.startswith("?:", self.position):
            self.position += 2
            opening = "(?:"
        elif self.peek() == "?":
            raise _NotAlike("a group with (?")
        else:
            self.groups += 1
        text, empty = self.alternatives(depth + 1)
        if self.take() != ")":
            raise _NotAlike("an open group")
        return f"{opening}{text})", empty

    def _quantified(self, text: str, empty: bool) -> tuple[str, bool]:
        char = self.peek()
        if char not in ("?", "*", "+", "{") or not char:
            return text, empty
        if char == "{":
            match = re.compile(r"\{(\d{1,3})(,(\d{1,3})?)?\}").match(self.pattern, self.position)
            if match is None:
                raise _NotAlike("a lone '{'")
            self.position = match.end()
            repeat, least = match[0], int(match[1])
        else:
            repeat, least = self.take(), 1 if char == "+" else 0
        if empty:
            raise _NotAlike("a repeat of what can be empty")
        if self.peek() == "?":
            repeat += self.take()
        if self.peek() and self.peek() in "?*+{":
            raise _NotAlike("a repeat of a repeat")
        return text + repeat, least == 0

    def _class(self) -> str:
        text = "["
        if self.peek() == "^":
            text += self.take()
        if self.peek() == "]":
            raise _NotAlike("an empty class")
        while (char := self.take()) != "]":
            if char in ("", "[", "&", "^"):
                raise _NotAlike("a class of classes")
            if char == "\\":
                text += self._escape(inside=True)
            elif char == "-":
                if not (text[-1].isalnum() and self.peek().isalnum()):
                    raise _NotAlike("a '-' in a class")
                text += char
            else:
                text += re.escape(char) if char in _SPECIAL else char
        return text + "]"

    def _escape(self, *, inside: bool) -> str:
        char = self.take()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _CLASSES:
            return _CLASSES[char] if inside else f"[{_CLASSES[char]}]"
        if char.lower() in _CLASSES and not inside:
            return f"[^{_CLASSES[char.lower()]}]"
        if not char or char.isalnum() or ord(char) > 127 or char.isspace():
            raise _NotAlike(f"the escape \\{char}")
        return re.escape(char)


@dataclass(frozen=True)
class Pattern:
    """A pattern that both engines match alike.

    Args:
        text: RE2's spelling.
        groups: Number of capturing groups.
        empty: Whether it can match nothing.
        anchors: `^`, `$`, both or none.
    """

    text: str
    groups: int
    empty: bool
    anchors: frozenset[str]


def translated(pattern: str | None) -> Pattern | str:
    """The pattern in RE2's words, or why there is none."""
    if pattern is None:
        return "the pattern is not a literal"
    if any(ord(c) > 0xFFFF for c in pattern) or "\x00" in pattern:
        return "the pattern holds rare characters"
    state = _Translation(pattern)
    try:
        text, empty = state.alternatives(0)
    except _NotAlike as reason:
        return f"the pattern has {reason}"
    if state.position < len(pattern):
        return "the pattern has a lone ')'"
    return Pattern(text, state.groups, empty, frozenset(state.anchors))


def pattern_of(node: Call) -> Pattern:
    """The pattern of a call that was not refused."""
    found = translated(text_of(node.args[1]))
    assert isinstance(found, Pattern)
    return found


def refuse(
    *, empty: bool = True, end: bool = False, start: bool = True, more: int = 2
) -> Callable[[Call], str | None]:
    """A rule that refuses patterns which the engines may match differently.

    Args:
        empty: Whether the pattern may match nothing.
        end: Whether it may be anchored with `$`, which eats a line break here.
        start: Whether it may be anchored with `^`.
        more: Position from which arguments must be literals.
    """

    def check(node: Call) -> str | None:
        found = translated(text_of(node.args[1]))
        if isinstance(found, str):
            return found
        if found.empty and not empty:
            return "the pattern can match nothing"
        if ("$" in found.anchors and not end) or ("^" in found.anchors and not start):
            return "the pattern is anchored"
        for arg in node.args[more:]:
            if int_of(arg) is None:
                return "an option of the pattern is not a literal"
        return None

    return check


def rlike(node: Call) -> str:
    """RLIKE."""
    found = pattern_of(node)
    matches = f"regexp_matches({{0}}, {quoted(found.text)})"
    if "$" not in found.anchors:
        return matches
    at_line_end = found.text.removesuffix(_END) + _END_OF_LINE
    return (
        f"CASE WHEN suffix({{0}}, chr(13) || chr(10)) "
        f"THEN regexp_matches({{0}}, {quoted(at_line_end)}) ELSE {matches} END"
    )


def _group(node: Call) -> int:
    return (int_of(node.args[2]) or 0) if len(node.args) > 2 else 1


def refuse_extract(node: Call) -> str | None:
    """Only groups that the pattern has."""
    reason = refuse(empty=False)(node)
    if reason is None and not 0 <= _group(node) <= pattern_of(node).groups:
        return "the pattern has no such group"
    return reason


def extract(node: Call) -> str:
    """REGEXP_EXTRACT."""
    return f"regexp_extract({{0}}, {quoted(pattern_of(node).text)}, {_group(node)})"


def extract_all(node: Call) -> str:
    """REGEXP_EXTRACT_ALL."""
    found = f"regexp_extract_all({{0}}, {quoted(pattern_of(node).text)}, {_group(node)})"
    return f"list_transform({found}, lambda g: coalesce(g, ''))"


def count(node: Call) -> str:
    """REGEXP_COUNT."""
    return f"CAST(len(regexp_extract_all({{0}}, {quoted(pattern_of(node).text)})) AS INTEGER)"


def substr(node: Call) -> str:
    """REGEXP_SUBSTR: no match is NULL, and so is a match of nothing."""
    return f"nullif(regexp_extract({{0}}, {quoted(pattern_of(node).text)}), '')"


def instr(node: Call) -> str:
    """REGEXP_INSTR: the length of what stands before the first match."""
    text = pattern_of(node).text
    before = quoted(f"^((?s:.)*?)(?:{text})")
    return (
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN regexp_matches({{0}}, {quoted(text)}) "
        f"THEN CAST(length(regexp_extract({{0}}, {before}, 1)) + 1 AS INTEGER) ELSE 0 END"
    )


def _replacement(text: str, groups: int) -> str | None:
    """RE2's form of Java's replacement text, or None."""
    out, position = "", 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            return None
        if char == "$":
            digit = text[position + 1 : position + 2]
            follower = text[position + 2 : position + 3]
            if not digit.isdigit() or int(digit) > groups or follower.isdigit():
                return None
            out += f"\\{digit}"
            position += 1
        else:
            out += char
        position += 1
    return out


def refuse_replace(node: Call) -> str | None:
    """Only literal replacements, from the start."""
    found = translated(text_of(node.args[1]))
    if isinstance(found, str):
        return found
    if found.empty or "$" in found.anchors:
        return "the pattern can match nothing"
    by = text_of(node.args[2])
    if by is None or _replacement(by, found.groups) is None:
        return "the replacement is not proven"
    if len(node.args) > 3 and int_of(node.args[3]) != 1:
        return "replacing from a position"
    return None


def replace(node: Call) -> str:
    """REGEXP_REPLACE of all matches."""
    found = pattern_of(node)
    by = _replacement(text_of(node.args[2]) or "", found.groups) or ""
    return f"regexp_replace({{0}}, {quoted(found.text)}, {quoted(by)}, 'g')"


def refuse_split(node: Call) -> str | None:
    """Only patterns that match something, and at most a literal limit."""
    pattern = text_of(node.args[1])
    if pattern == "" and len(node.args) == 2:
        return None
    reason = refuse(empty=False, start=False)(node)
    limit = int_of(node.args[2]) if len(node.args) > 2 else -1
    if reason is None and limit is not None and limit > 0 and not _literal(pattern or ""):
        return "a limit needs a plain pattern"
    return reason


def _literal(pattern: str) -> str | None:
    """The text that a pattern without operators stands for."""
    text = re.sub(r"\\([^\w\s])", r"\1", pattern)
    plain = re.fullmatch(r"(?:[^\\^$.|?*+()\[\]{}]|\\[^\w\s])+", pattern)
    return text if plain else None


def split(node: Call) -> str:
    """SPLIT by a pattern."""
    pattern = text_of(node.args[1]) or ""
    limit = int_of(node.args[2]) if len(node.args) > 2 else -1
    if pattern == "":
        return "CASE WHEN {0} = '' THEN [''] ELSE string_split({0}, '') END"
    plain = _literal(pattern)
    parts = (
        f"string_split({{0}}, {quoted(plain)})"
        if plain is not None
        else f"regexp_split_to_array({{0}}, {quoted(pattern_of(node).text)})"
    )
    if limit is None or limit <= 0 or plain is None:
        return parts
    rest = f"array_to_string({parts}[{limit}:], {quoted(plain)})"
    return (
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN len({parts}) <= {limit} THEN {parts} "
        f"ELSE list_append({parts}[:{limit - 1}], {rest}) END"
    )
