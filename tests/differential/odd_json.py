"""Random texts that are JSON, JSON to Spark only, or nearly JSON; and paths into them."""

from __future__ import annotations

import random
from collections.abc import Callable

NAMES = ["a", "b", "c", "a b", "é", "", "😀", "a.b", "A", "it's"]
PATHS = [
    "$.a", "$.b", "$[0]", "$[1]", "$.a[0]", "$.a.b", "$.a[1].b", "$[0].a", "$[1][0]", "$.b.a[0]", "$[2]", "$.c", "$.a.a",
]  # fmt: skip
ODD_PATHS = [
    "$", "$.*", "$[*]", "$.a[*]", "$[*].a", "$[*][*]", "$.a[*].b", "$[*][0]", "$[0][*]", "$.a[*][*]", "$[*][*].a", "$[*][*][*]", "$[*].a[*]", "$[*].a[0]", "$.a[0][*]", "$[*][*][0]", "$[*][0][*]", "$[0][*][*]", "$[*][1][*].a", "$.a[*].b[*]",
    "$['a']", "$['a b']", "$['*']", "$.a b", "$. a", "$ .a", " $.a", "$.a ", "$.é", "$.😀", "$['a.b']", "$['']", "$.", "$..a", "$.a.*", "$[ 1]", "$[1 ]", "$ ['a']", "$['a'][0]", "$['a'].b", "$[01]", "$[-1]", "$[a]", "$[]", "$[", "a", "", "$a", "$*",
    "$.*a", "$.a['b']", "$.a[*", "$[*]x", "$\n['a']", "$.a\t", "$[1][*].b", "$.A", "$[\"a\"]",
]  # fmt: skip
NUMBERS = [
    "0", "-0", "1", "-7", "01", "+1", ".5", "1.", "1.5", "2.50", "-0.0", "1e3", "1E+2", "1e-2", "1e", "1e+", "-", "--1", "1e400", "-1e400", "1e-400", "2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "123456789012345678901234567890",
    "0.1", "0.30000000000000004", "12345678.9", "9999999.5", "1e7", "0.001", "0.0001", "1e-5", "123456789.125", "1.0e10", "4.9e-324", "2.2250738585072014E-308", "2e23", "1.7976931348623157e308", "NaN", "-NaN", "Infinity", "-Infinity", "INF", "+Infinity",
    "1.0f", "1L", "0x1", "1_0", "00", "-01", "0.0", "0e0", "1e5", "100.0", "5e-7", "3.14159265358979",
]  # fmt: skip
PIECES = [
    "x", "y z", "é", "日本", "😀", "/", "it", " ", "~", "\x7f", "\u2028", "\\n", "\\t", "\\\\", '\\"', "\\/", "\\b", "\\f", "\\r", "\\u0041", "\\u00e9", "\\u0001", "\\u0000", "\\ud83d\\ude00", "\\uD800", "\\udc00", "\\udc00\\udc00", "\\'", "\\x", "\\u12", "\\u12G4", "\\U0041", "\x01", "\x1f", "\t", "\n", "\0", "{", "]", ",", ":", "//",
]  # fmt: skip
WORDS = ["true", "false", "null", "True", "nul", "nulls", "truee", "undefined", "TRUE", "true1", "null]"]  # fmt: skip
EDITS = [*"{}[]:,'\"\\ 01-.eE+tfnN\t\n\0\x01/#é😀\ufeff", "\\u", "null", '""', "''", "[]", "{}", "/**/"]  # fmt: skip

DEEP = ["[" * n + "]" * n for n in (100, 200, 999, 1001, 1500)] + ['{"a":' * n + "1" + "}" * n for n in (100, 1001)]  # fmt: skip
LONG = [
    f'{{"a":{"1" * 1000}}}', f'{{"a":{"1" * 1001}}}', f'{{"a":-{"1" * 1000}}}', f'{{"a":0.{"1" * 999},"b":2}}', f'{{"a":0.{"1" * 1000},"b":2}}', f'{{"b":1.{"1" * 990}e-123456789}}', f'{{"b":1.{"1" * 990}e-1234567890}}', f'[1,{"2" * 1001}]', f'["{"9" * 1500}"]',
    f'{{"{"n" * 12000}":1,"a":2}}', f'{{"{"n" * 50000}":1,"a":2}}', f'{{"a":2,"{"n" * 50001}":1}}', f'{{"a":2,"b":{{"{"😀" * 25001}":1}}}}', f'{{"a":2,"b":{{"{"😀" * 25000}":1}}}}', f'{{"a":"{"é" * 30000}","b":1}}', f'{{"a":"{"x" * 9000}\\ud83d\\ude00","b":["{"😀" * 5000}"]}}', f'{{"a":{[1] * 30000}}}', f'[{"[]," * 1200}1]', f"['{'[' * 1200}']", f'["{"{" * 1200}"]', f'[{"[" * 999}{"]" * 1000}', f'{{}} {"[" * 1200}',
    '{"a":"' + "x" * 30000,
]  # fmt: skip
ENCODED = [
    "\ufeff{\"a\":1}", "\ufeff[1]", "\ufeff\ufeff[1]", " \ufeff[1]", "\ufeff", "\ufeff ", "\ufeff{'a':'\ufeff'}", "\0", "\0\0", "\0[\0]", "[\0]\0", "\0{\0\"\0a\0\"\0:\0001\0}", "{\0\"\0a\0\"\0:\0001\0}\0", "[\0]", "[\0", "\0[", "[\x001\0]\0", "\0[\0\"\x20\xac\0\"\0]", "[\0\"\0\xac\x20\"\0]\0",
    "[]\0", "[1\0]", "[ \0]", "[]\0\0", "[1]\0\0", "[\x001]", "é\0[", "{\"\0\":1,\"a\":2}", "{\"a\0\":1,\"a\":2}", "\ufeff\0[\0]", "\0\ufeff",
]  # fmt: skip
FIXED = [
    "", " ", "\t\n\r ", "{}", "[]", " {} ", "{} x", "[] ]", "[]]", "{}}", "[1] 2", "[1]x", "{", "[", "}", "]", '"', "'", '"a', "'a", '"a"', "'a'", '"a"x', "'a' x", "null", "nullx", "null x", "null,", "null$", "true", "true$", "true]", "true}", "trueé", "false/", "1", "1 ", "1x", "1,", "1]", "1.5", "1.5 x", "1.5e3\n", "-", "-1", "-0", "01", "1.", "NaN", "Infinity", "-Infinity",
    "[,1]", "[1,]", "[1,,2]", "[1 2]", "[1}", '{"a":1]', '{"a"}', '{"a":}', '{"a" 1}', '{"a"::1}', "{a:1}", "{1:2}", "{null:1}", '{"a":1,}', '{,"a":1}', '{"a":1 "b":2}', "{'a':1,\"a\":2}", "{'a\"b':1}", "{'a\\'b':1,'a':2}", "['\"']", "[\"'\"]", "['\\\"']", "[\"\\'\"]", "['\\'']", "['a' 'b']", "['a\"]", "[\"a']", "[\"a ',']", "['a \",\"]", "['a\",\"b']",
    '{"a":{"b":1},"a":{"c":2}}', '{"a":{"c":1},"a":{"b":2}}', '{"a":null,"a":1}', '{"a":1,"a":null}', '{"a":{"b":null},"a":{"b":3}}', '{"a":[],"a":[1]}', '{"a":[null],"a":[1]}', '{"a":"\\ud800","a":1}', '{"a":1,"b":"\\ud800"}', '{"a":1,"b":["\\ud800"]}', '{"b":"\\udc00\\udc00"}', '{"\\ud800":1,"a":2}', '{"a":{"\\ud800":"\\udc00","😀":"😀"}}', '{"\\u0061":1}', '{"\\ud83d\\ude00":1}',
    '{"a":null,"\\u0061":1}', '{"a":{"b":1},"\\u0061":{"b":2}}', '{"a":"x, ]","b":": nan"}', '{"b":[1.25,{"a":"😀"}],"a":[0.5]}',
    "[[1,2],[3]]", "[[1],[2]]", "[[[1],[2]],[[3]]]", "[[],[]]", "[[]]", '[{"a":[1]},{"a":[2,3]}]', '[{"a":1},{"a":2}]', '[{"a":1},{"b":2}]', '[{"b":1}]', '[{"a":null}]', "[null,[null]]", '["a",["b",["c"]]]', '{"a":[{"b":1},{"b":[2,3]}]}', '{"a":[{"b":[1]}]}', '{"a":[{"b":[]},{"b":[]}]}', '{"a":[{"c":1}],"a":[{"b":5}]}', '{"a":[[1,[2]],[3]]}', '[[{"a":1},{"a":2}],[{"a":3}]]', '["😀\\u0001","x"]', '[["😀"]]', '["\\ud800"]', '["\\ud800","x"]', '[[["😀"],["y"]]]', '{"a":["\\udc00\\udc00",1]}', '[1.50]', '[1.5,2e3]', '[[1e999]]', '["a"]', '[["a"]]', "[1]", "[true]", "[[null]]",
    "/**/[1]", "[1/**/]", "#x\n[1]", "[1]#x", "\x0b[1]", "\x0c[]", "\xa0[1]", "\u2028[1]", "[\xa01]", "\x1e[1]", "[1]\x1e", "\x01[1]", "{\"a\"\x01:1}", "{\"a\x01\":1}", "{'a\x01':'\x02'}",
]  # fmt: skip


def odd_texts(rng: random.Random, count: int) -> list[str | None]:
    """The fixed texts, each prefix of some, and random ones, `count` in all or a little more."""
    texts: list[str | None] = [None, *FIXED, *ENCODED, *LONG, *DEEP]
    texts += [text[:end] for text in FIXED if len(text) > 20 for end in range(len(text))]
    while len(texts) < count:
        text = _value(rng, 3, rng.random() < 0.3)
        texts.append(text)
        if rng.random() < 0.5:
            texts.append(_edited(rng, text))
    return texts


def _value(rng: random.Random, levels: int, lenient: bool) -> str:
    kinds: list[Callable[[], str]] = [
        lambda: _number(rng, lenient),
        lambda: _string(rng, lenient),
        lambda: rng.choice(WORDS if rng.random() < 0.05 else WORDS[:3]),
    ]
    if levels and (levels == 3 or rng.random() < 0.5):
        kinds = [lambda: _array(rng, levels, lenient), lambda: _object(rng, levels, lenient)]
    return _space(rng) + rng.choice(kinds)() + _space(rng)


def _number(rng: random.Random, lenient: bool) -> str:
    if rng.random() < 0.02:
        return rng.choice(NUMBERS)
    shapes: list[Callable[[], str]] = [
        lambda: str(rng.randint(-99, 99)),
        lambda: str(rng.randint(-(1 << 70), 1 << 70)),
        lambda: repr(rng.uniform(-1e3, 1e3)),
        lambda: f"{rng.uniform(-1e8, 1e8):.{rng.randint(1, 4)}f}",
        lambda: f"{rng.randint(1, 9999)}e{rng.randint(-330, 310)}",
        lambda: rng.choice([n for n in NUMBERS if _is_number(n)]),
    ]
    return rng.choice(shapes)()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.lstrip("-")[0] in "0123456789" and not text.lstrip("-").startswith("0" * 2) and not text.endswith(".") and text not in ("01", "-01", "1_0")  # fmt: skip


def _string(rng: random.Random, lenient: bool) -> str:
    pieces = PIECES if rng.random() < 0.1 else PIECES[:24]
    text = "".join(rng.choice(pieces) for _ in range(rng.randint(0, 4)))
    if lenient and rng.random() < 0.5:
        return f"'{text}'"
    return f'"{text}"'


def _name(rng: random.Random, lenient: bool) -> str:
    if rng.random() < 0.05:
        return _string(rng, lenient)
    name = rng.choice(NAMES[:3] if rng.random() < 0.8 else NAMES)
    if lenient and rng.random() < 0.5 and "'" not in name:
        return f"'{name}'"
    return f'"{name}"'


def _array(rng: random.Random, levels: int, lenient: bool) -> str:
    items = [_value(rng, levels - 1, lenient) for _ in range(rng.randint(0, 3))]
    return f"[{','.join(items)}]"


def _object(rng: random.Random, levels: int, lenient: bool) -> str:
    members = [
        f"{_space(rng)}{_name(rng, lenient)}{_space(rng)}:{_value(rng, levels - 1, lenient)}"
        for _ in range(rng.randint(0, 4))
    ]
    return f"{{{','.join(members)}}}"


def _space(rng: random.Random) -> str:
    return rng.choice([" ", "\n", "\t", "\r\n", "  "]) if rng.random() < 0.1 else ""


def _edited(rng: random.Random, text: str) -> str:
    """The text with one thing cut off, taken out, put in or replaced."""
    at = rng.randint(0, len(text))
    kind = rng.randint(0, 3)
    if kind == 0:
        return text[:at]
    added = "" if kind == 1 else rng.choice(EDITS)
    return text[:at] + added + text[at + (kind != 2) :]
