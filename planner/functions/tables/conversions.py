"""Hashes, URLs, ciphers, and numbers by formats."""

from __future__ import annotations

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_conversions as spell
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.functions.nested_rules import has_kind
from stagecoach.planner.functions.spell_formats import refuse_to_char, refuse_to_number, to_number
from stagecoach.planner.functions.spell_strings import text_of
from stagecoach.planner.plan.coercion import as_binary, as_string, cast_literal
from stagecoach.planner.types import BIGINT, BINARY, INT, STRING, DataType, decimal, decimal_for

_TEXT = rule.fixed(STRING)
_BYTES = rule.fixed(BINARY)


def _by_format(args: Args) -> DataType:
    """Type of TO_NUMBER: the digits of its format."""
    layout = text_of(args[1])
    if layout is None:
        raise UnsupportedSqlError("to_number with a computed format")
    whole, _, rest = layout.upper().replace("D", ".").partition(".")
    places = sum(rest.count(c) for c in "09")
    digits = places + sum(whole.count(c) for c in "09")
    if not digits:
        raise AnalysisError(f"the number format '{layout}' has no digit")
    return decimal(digits, places)


def _ciphered(args: Args) -> Args:
    texts = (as_string(a) for a in args[2:4])
    return (*(as_binary(a) for a in args[:2]), *texts, *(as_binary(a) for a in args[4:]))


def _enciphered(args: Args) -> Args:
    if len(args) < 5:
        raise UnsupportedSqlError("aes_encrypt with a random start, another in each run")
    return _ciphered(args)


def _perhaps_encoded(args: Args) -> Args:
    for layout in args[1:]:
        require_constant(layout, "the format of to_binary")
    return rule.strings(args)


def _encoded(args: Args) -> Args:
    text, *layout = _perhaps_encoded(args)
    word = text_of(layout[0]) if layout else None
    if word is not None and word.lower() not in ("hex", "utf-8", "utf8", "base64"):
        raise AnalysisError(f"the format of to_binary is '{word}', not hex, utf-8 or base64")
    return (text, *layout)


def _hashed(args: Args) -> Args:
    for arg in args:
        if has_kind(arg.dtype, "map"):
            raise AnalysisError(f"{arg.dtype} has no hash, because maps have no order")
    return args


def _formatted(args: Args) -> Args:
    layout = text_of(require_constant(as_string(args[1]), "the format of to_char"))
    if not args[0].dtype.is_decimal and not args[0].dtype.is_integral:
        raise UnsupportedSqlError(f"to_char of {args[0].dtype}")
    if layout is not None and not any(digit in layout for digit in "09"):
        raise AnalysisError(f"the number format '{layout}' has no digit")
    number = cast_literal(args[0], decimal_for(args[0].dtype))
    return (number, as_string(args[1]))


FUNCTIONS: tuple[Function, ...] = (
    Function("md5", (1, 1), rule.binaries, _TEXT, "md5({0})", "md5({0})", proof="hashes"),
    Function("sha1", (1, 1), rule.binaries, _TEXT, "sha1({0})", "sha1({0})", proof="hashes"),
    Function("sha2", (2, 2), rule.binary_ints, _TEXT, "sha2({0}, {1})", spell.sha2, spell.refuse_sha2, "hashes"),
    Function("crc32", (1, 1), rule.binaries, rule.fixed(BIGINT), "crc32({0})", spell.crc32, proof="hashes"),
    Function("hmac", (2, 3), lambda a: (as_binary(a[0]), as_binary(a[1]), *rule.strings(a[2:])), _BYTES, listed("hmac({*})"), spell.hmac, spell.refuse_hmac, "hashes"),
    Function("hash", (1, 1 << 20), _hashed, rule.fixed(INT), listed("hash({*})"), spell.folded_hash("hash", "INTEGER"), spell.refuse_hash, "hashes"),
    Function("xxhash64", (1, 1 << 20), _hashed, rule.fixed(BIGINT), listed("xxhash64({*})"), spell.folded_hash("xxhash64", "BIGINT"), spell.refuse_hash, "hashes"),
    Function("url_encode", (1, 1), rule.strings, _TEXT, "url_encode({0})", spell.URL_ENCODE, proof="urls"),
    Function("url_decode", (1, 1), rule.strings, _TEXT, "url_decode({0})", spell.url_decode(safe=False), proof="urls"),
    Function("try_url_decode", (1, 1), rule.strings, _TEXT, "try_url_decode({0})", spell.url_decode(safe=True), proof="urls"),
    Function("parse_url", (2, 3), rule.only_strings, _TEXT, listed("parse_url({*})"), spell.parse_url, spell.refuse_parse_url, "urls"),
    Function("try_parse_url", (2, 3), rule.only_strings, _TEXT, listed("try_parse_url({*})"), spell.parse_url, spell.refuse_parse_url, "urls"),
    Function("to_binary", (1, 2), _encoded, _BYTES, listed("to_binary({*})"), spell.to_binary, spell.refuse_to_binary, "conversions"),
    Function("try_to_binary", (1, 2), _perhaps_encoded, _BYTES, listed("try_to_binary({*})"), spell.try_to_binary, spell.refuse_try_to_binary, "conversions"),
    Function("to_number", (2, 2), rule.strings, _by_format, "to_number({0}, {1})", to_number(safe=False), refuse_to_number, "conversions"),
    Function("try_to_number", (2, 2), rule.strings, _by_format, "try_to_number({0}, {1})", to_number(safe=True), refuse_to_number, "conversions"),
    Function("to_char", (2, 2), _formatted, _TEXT, "to_char({0}, {1})", "java_to_char(CAST({0} AS VARCHAR), {1})", refuse_to_char, "conversions"),
    Function("aes_decrypt", (2, 5), _ciphered, _BYTES, listed("aes_decrypt({*})")),
    Function("try_aes_decrypt", (2, 5), _ciphered, _BYTES, listed("try_aes_decrypt({*})")),
    Function("aes_encrypt", (2, 6), _enciphered, _BYTES, listed("aes_encrypt({*})")),
)  # fmt: skip
