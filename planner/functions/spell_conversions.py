"""Spell Spark's hashes, URL functions and conversions for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable

from stagecoach.planner.functions.duckdb import decimal_to_unscaled
from stagecoach.planner.functions.spell_collections import duck_name, raises
from stagecoach.planner.functions.spell_strings import UNHEX, int_of, text_of
from stagecoach.planner.functions.templates import quoted
from stagecoach.planner.plan.expressions import Call
from stagecoach.planner.types import NULL, DataType


def sha2(node: Call) -> str:
    """SHA2: DuckDB itself knows 256 bits only."""
    bits = int_of(node.args[1]) or 256
    return "sha256({0})" if bits == 256 else f"java_sha{bits}({{0}})"


def refuse_sha2(node: Call) -> str | None:
    """Only the lengths that there are, as literals."""
    bits = int_of(node.args[1])
    return None if bits in (0, 224, 256, 384, 512) else "sha2 of other lengths is not proven"


_HASHED = {
    "boolean": ("integer", "CAST({0} AS INTEGER)"),
    "tinyint": ("integer", "CAST({0} AS INTEGER)"),
    "smallint": ("integer", "CAST({0} AS INTEGER)"),
    "int": ("integer", "{0}"),
    "bigint": ("bigint", "{0}"),
    "float": ("float", "{0}"),
    "double": ("double", "{0}"),
    "string": ("blob", "encode({0})"),
    "binary": ("blob", "{0}"),
    "date": ("integer", "CAST({0} - DATE '1970-01-01' AS INTEGER)"),
    "timestamp": ("bigint", "epoch_us({0})"),
    "timestamp_ntz": ("bigint", "epoch_us({0})"),
}


def folded_hash(name: str, seed: str) -> Callable[[Call], str]:
    """HASH and XXHASH64: the arguments go into the seed one by one; a NULL does nothing."""

    def spell(node: Call) -> str:
        text = f"CAST(42 AS {seed})"
        for position, arg in enumerate(node.args):
            text = _folded(name, arg.dtype, f"{{{position}}}", text)
        return text

    return spell


def _folded(name: str, dtype: DataType, value: str, seed: str) -> str:
    """The seed after a value, whose members go into it one by one."""
    if dtype == NULL:
        return seed
    if dtype.kind == "struct":
        for field in dtype.fields:
            member = f"struct_extract({value}, {quoted(field.name)})"
            seed = _folded(name, field.dtype, member, seed)
        return seed
    if dtype.kind == "array":
        inner, height = dtype.fields[0].dtype, _height(dtype)
        step = _folded(name, inner, f"h{height}_", f"s{height}_")
        present = f"coalesce({value}, CAST([] AS {duck_name(dtype)}))"
        return f"list_reduce({present}, lambda s{height}_, h{height}_: {step}, {seed})"
    kind, held = _held(dtype)
    return f"java_{name}_{kind}({held.replace('{0}', value)}, {seed})"


def _held(dtype: DataType) -> tuple[str, str]:
    """The kind of a value as Spark holds it, and the template that makes it."""
    if dtype.is_interval:
        return ("bigint" if dtype.is_day_time else "integer"), "{0}"
    if not dtype.is_decimal:
        return _HASHED[dtype.kind]
    if dtype.precision > 18:
        return "blob", "java_decimal_bytes(CAST({0} AS VARCHAR))"
    # 19 digits multiply in 128 bits.
    wide = f"CAST({{0}} AS DECIMAL(19,{dtype.scale}))"
    return "bigint", f"CAST({decimal_to_unscaled(wide, dtype.scale)} AS BIGINT)"


def _height(dtype: DataType) -> int:
    return 1 + max((_height(f.dtype) for f in dtype.fields), default=0)


def refuse_hash(node: Call) -> str | None:
    """Every type but maps, which Spark refuses, and calendar intervals."""
    wrong = next((a.dtype for a in node.args if not is_hashed(a.dtype)), None)
    return None if wrong is None else f"{node.function} of {wrong} is not proven"


def is_hashed(dtype: DataType) -> bool:
    """Whether values of a type are hashed on DuckDB."""
    if dtype.kind in ("array", "struct"):
        return all(is_hashed(field.dtype) for field in dtype.fields)
    return dtype == NULL or dtype.is_decimal or dtype.is_interval or dtype.kind in _HASHED


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0xEDB88320 if value & 1 else 0)
        table.append(value)
    return table


def crc32(_: Call) -> str:
    """CRC32, byte by byte."""
    table = f"CAST([{', '.join(map(str, _crc_table()))}] AS BIGINT[])"
    digits = "hex({0})"
    byte = f"CAST('0x' || substring({digits}, 2 * i + 1, 2) AS BIGINT)"
    values = f"list_transform(range(CAST(octet_length({{0}}) AS BIGINT)), lambda i: {byte})"
    step = f"xor(a >> 8, {table}[CAST(xor(a & 255, b) AS INTEGER) + 1])"
    folded = f"list_reduce(list_prepend(CAST(4294967295 AS BIGINT), {values}), lambda a, b: {step})"
    return f"CASE WHEN {{0}} IS NOT NULL THEN xor({folded}, CAST(4294967295 AS BIGINT)) END"


URL_ENCODE = "replace(replace(replace(url_encode({0}), '%20', '+'), '%2A', '*'), '~', '%7E')"
_ESCAPED = quoted("(?s)(?:[^%]|%[0-9a-fA-F]{2})*")


def url_decode(*, safe: bool) -> str:
    """URL_DECODE; a percent sign without two digits raises, or is NULL where that is asked for."""
    other = "NULL" if safe else "CAST(error('CANNOT_DECODE_URL') AS VARCHAR)"
    return (
        f"CASE WHEN regexp_full_match({{0}}, {_ESCAPED}) THEN url_decode(replace({{0}}, '+', ' ')) "
        f"WHEN {{0}} IS NOT NULL THEN {other} END"
    )


_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_TOP = "[a-zA-Z](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_CHARS = r"(?:[a-zA-Z0-9_.~!$&'()*+,;=:@/?-]|%[0-9a-fA-F]{2})"
_URL = (
    r"^([a-zA-Z][a-zA-Z0-9+.-]*)://(?:([a-zA-Z0-9_.~!$&()*+,;=:-]+)@)?"
    rf"((?:{_LABEL}\.)*{_TOP})(:[0-9]{{1,5}})?(/(?:[a-zA-Z0-9_.~!$&()*+,;=:@/-]|%[0-9a-fA-F]{{2}})*)?"
    rf"(\?{_CHARS}*)?(#{_CHARS}*)?$"
)
_PARTS = {
    "PROTOCOL": (1,),
    "HOST": (3,),
    "PATH": (5,),
    "QUERY": (6,),
    "REF": (7,),
    "FILE": (5, 6),
    "AUTHORITY": (2, 3, 4),
    "USERINFO": (2,),
}


def parse_url(node: Call) -> str:
    """PARSE_URL of plain URLs; an error for all others."""
    part = str(text_of(node.args[1]))
    body = _part(part)
    if len(node.args) == 3:
        key = re.escape(str(text_of(node.args[2])))
        found = quoted(f"(?:&|^){key}=([^&]*)")
        body = (
            f"CASE WHEN regexp_matches({body}, {found}) THEN regexp_extract({body}, {found}, 1) END"
        )
    return (
        f"CASE WHEN regexp_matches({{0}}, {quoted(_URL)}) THEN {body} "
        "WHEN {0} IS NOT NULL THEN CAST(error('SPARK_ONLY') AS VARCHAR) END"
    )


def _part(part: str) -> str:
    group = {n: f"regexp_extract({{0}}, {quoted(_URL)}, {n})" for n in range(1, 8)}
    if part in ("QUERY", "REF"):
        text = group[_PARTS[part][0]]
        return f"CASE WHEN {text} <> '' THEN substring({text}, 2) END"
    if part == "USERINFO":
        return f"nullif({group[2]}, '')"
    if part == "AUTHORITY":
        user = f"CASE WHEN {group[2]} <> '' THEN {group[2]} || '@' ELSE '' END"
        return f"{user} || {group[3]} || {group[4]}"
    return " || ".join(group[n] for n in _PARTS[part])


def refuse_parse_url(node: Call) -> str | None:
    """Only literal parts and keys."""
    part = text_of(node.args[1])
    if part not in _PARTS:
        return "the part of the URL is not a known literal"
    if len(node.args) == 3:
        key = text_of(node.args[2])
        if part != "QUERY" or key is None or not re.fullmatch(r"\w+", key, re.A):
            return "the key of the URL is not a plain literal"
    return None


def _layout(node: Call) -> str:
    return str(text_of(node.args[1])).lower() if len(node.args) == 2 else "hex"


def to_binary(node: Call) -> str:
    """TO_BINARY; malformed text raises."""
    return {
        "hex": "unhex({0})",
        "utf-8": "encode({0})",
        "utf8": "encode({0})",
        "base64": "from_base64({0})",
    }[_layout(node)]


def refuse_to_binary(node: Call) -> str | None:
    """Only literal formats."""
    known = _layout(node) in ("hex", "utf-8", "utf8", "base64")
    return None if known else "the format is not a literal"


def try_to_binary(node: Call) -> str:
    """TRY_TO_BINARY."""
    return UNHEX if _layout(node) == "hex" else "encode({0})"


def refuse_try_to_binary(node: Call) -> str | None:
    """Only formats in which DuckDB knows what is malformed."""
    return None if _layout(node) in ("hex", "utf-8", "utf8") else "the format is not proven"


_DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")


def hmac(node: Call) -> str:
    """HMAC: a keyed hash; Java takes no empty key."""
    return (
        f"CASE WHEN octet_length({{0}}) = 0 THEN {raises('HMAC_CRYPTO_ERROR')} "
        f"ELSE java_hmac({{0}}, {{1}}, '{_digest(node)}') END"
    )


def refuse_hmac(node: Call) -> str | None:
    """Only literal algorithms that Spark knows."""
    return None if _digest(node) in _DIGESTS else "the algorithm of hmac is not proven"


def _digest(node: Call) -> str:
    name = text_of(node.args[2]) if len(node.args) > 2 else "SHA-256"
    return (name or "").lower().replace("sha-", "sha")
