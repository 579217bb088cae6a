"""Functions of strings and binaries."""

from __future__ import annotations

from stagecoach.planner.errors import AnalysisError, UnsupportedSqlError
from stagecoach.planner.functions import rules as rule
from stagecoach.planner.functions import spell_strings as spell
from stagecoach.planner.functions.constant_arguments import require_constant
from stagecoach.planner.functions.function import Args, Function, listed
from stagecoach.planner.plan.coercion import as_int, as_string
from stagecoach.planner.plan.expressions import Call, Literal
from stagecoach.planner.types import BINARY, BOOLEAN, DOUBLE, INT, NULL, STRING, DataType, array_of


def _elt(args: Args) -> Args:
    return (as_int(args[0]), *rule.text_or_binary(args[1:]))


def _overlay(args: Args) -> Args:
    types = [a.dtype for a in args[:2]]
    if BINARY in types and not {*types} <= {BINARY, NULL}:
        raise AnalysisError(
            f"expected two strings or two binaries, found {types[0]} and {types[1]}"
        )
    return (*rule.text_or_binary(args[:2]), *(as_int(a) for a in args[2:]))


def _separated(args: Args) -> Args:
    if any(a.dtype.kind == "array" for a in args):
        raise UnsupportedSqlError("concat_ws of arrays")
    return rule.strings(args)


def _concatenated(args: Args) -> Args:
    # A NULL makes a text of binaries.
    return rule.text_or_binary(args) if NULL not in {a.dtype for a in args} else rule.strings(args)


def _found(args: Args) -> Args:
    if len(args) > 2:
        raise UnsupportedSqlError("instr from a place on, or of a later occurrence")
    return rule.strings(args)


def _padded(args: Args) -> Args:
    text = rule.text_or_binary(args[:1])[0]
    if len(args) == 3:
        text, fill = rule.text_or_binary((args[0], args[2]))
    elif text.dtype == BINARY:
        raise UnsupportedSqlError("padding of a binary with zeros")
    else:
        fill = Literal(STRING, " ")
    return (text, as_int(args[1]), fill)


def _masked(args: Args) -> Args:
    given = rule.only_strings(args)
    for char in given[1:]:
        require_constant(char, "a character of mask")
    defaults = tuple(Literal(STRING, c) for c in ("X", "x", "n", None))
    for char in given[1:]:
        if isinstance(char, Literal) and char.value is not None and len(str(char.value)) != 1:
            raise AnalysisError("mask takes single characters")
    return (*given, *defaults[len(given) - 1 :])


def _hexed(args: Args) -> Args:
    if args[0].dtype.is_numeric:
        return rule.bigints(args)
    return rule.text_or_binary(args)


def _not_binary(node: Call) -> str | None:
    return f"{node.function} of binaries is not proven" if node.args[0].dtype == BINARY else None


def _not_elt_binary(node: Call) -> str | None:
    return None if node.dtype == STRING else f"elt of {node.dtype} is not proven"


def _length(node: Call) -> str:
    return f"CAST({'octet_length' if node.args[0].dtype == BINARY else 'length'}({{0}}) AS INTEGER)"


def _octets(node: Call) -> str:
    return "octet_length({0})" if node.args[0].dtype == BINARY else "strlen({0})"


_STRINGS = array_of(STRING)
_TEXT = rule.fixed(STRING)


def _same_type(args: Args) -> DataType:
    return args[0].dtype


FUNCTIONS: tuple[Function, ...] = (
    Function("contains", (2, 2), rule.text_or_binary, rule.fixed(BOOLEAN), "contains({0}, {1})", "contains({0}, {1})", _not_binary, "strings"),
    Function("startswith", (2, 2), rule.text_or_binary, rule.fixed(BOOLEAN), "startswith({0}, {1})", "starts_with({0}, {1})", _not_binary, "strings"),
    Function("endswith", (2, 2), rule.text_or_binary, rule.fixed(BOOLEAN), "endswith({0}, {1})", "ends_with({0}, {1})", _not_binary, "strings"),
    Function("concat", (0, 1 << 20), _concatenated, lambda a: a[0].dtype if a else STRING, listed("concat({*})"), lambda n: "(" + " || ".join(f"{{{i}}}" for i in range(len(n.args))) + ")" if n.args else "''", proof="strings"),
    Function("concat_ws", (1, 1 << 20), _separated, _TEXT, listed("concat_ws({*})"), lambda n: "concat_ws({0}, {*})".replace("{*}", ", ".join(f"{{{i}}}" for i in range(1, len(n.args)))) if len(n.args) > 1 else "CASE WHEN {0} IS NOT NULL THEN '' END", proof="strings"),
    Function("substring", (2, 3), rule.text_or_binary_ints, _same_type, listed("substring({*})"), spell.substring, proof="strings"),
    Function("length", (1, 1), rule.text_or_binary, rule.fixed(INT), "length({0})", _length, proof="strings"),
    Function("octet_length", (1, 1), rule.text_or_binary, rule.fixed(INT), "octet_length({0})", lambda n: f"CAST({_octets(n)} AS INTEGER)", proof="strings"),
    Function("bit_length", (1, 1), rule.text_or_binary, rule.fixed(INT), "bit_length({0})", lambda n: f"CAST(8 * {_octets(n)} AS INTEGER)", proof="strings"),
    Function("replace", (2, 3), rule.replacement, _TEXT, listed("replace({*})"), listed("replace({*})"), proof="strings"),
    Function("upper", (1, 1), rule.strings, _TEXT, "upper({0})", spell.UPPER, proof="strings"),
    Function("lower", (1, 1), rule.strings, _TEXT, "lower({0})", spell.LOWER, proof="strings"),
    Function("initcap", (1, 1), rule.strings, _TEXT, "initcap({0})", spell.INITCAP, proof="strings"),
    Function("trim", (1, 2), rule.strings, _TEXT, spell.spark_trim("BOTH"), spell.trim("trim"), proof="strings"),
    Function("ltrim", (1, 2), rule.strings, _TEXT, spell.spark_trim("LEADING"), spell.trim("ltrim"), proof="strings"),
    Function("rtrim", (1, 2), rule.strings, _TEXT, spell.spark_trim("TRAILING"), spell.trim("rtrim"), proof="strings"),
    Function("left", (2, 2), rule.text_or_binary_ints, _same_type, "left({0}, {1})", spell.side("left"), proof="strings"),
    Function("right", (2, 2), rule.string_ints, _TEXT, "right({0}, {1})", spell.side("right"), proof="strings"),
    Function("lpad", (2, 3), _padded, _same_type, listed("lpad({*})"), spell.pad("lpad"), _not_binary, "strings"),
    Function("rpad", (2, 3), _padded, _same_type, listed("rpad({*})"), spell.pad("rpad"), _not_binary, "strings"),
    Function("reverse", (1, 1), rule.text_or_binary, _same_type, "reverse({0})", "array_to_string(list_reverse(string_split({0}, '')), '')", _not_binary, "strings"),
    Function("repeat", (2, 2), rule.string_ints, _TEXT, "repeat({0}, {1})", "repeat({0}, CASE WHEN {1} < 0 THEN 0 ELSE {1} END)", proof="strings"),
    Function("space", (1, 1), rule.ints, _TEXT, "space({0})", "repeat(' ', CASE WHEN {0} < 0 THEN 0 ELSE {0} END)", proof="strings"),
    Function("ascii", (1, 1), rule.strings, rule.fixed(INT), "ascii({0})", "CAST(ascii({0}) AS INTEGER)", proof="strings"),
    Function("chr", (1, 1), rule.bigints, _TEXT, "chr({0})", "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END", proof="strings"),
    Function("elt", (2, 1 << 20), _elt, rule.last_type, listed("elt({*})"), spell.elt, _not_elt_binary, "strings"),
    Function("find_in_set", (2, 2), rule.strings, rule.fixed(INT), "find_in_set({0}, {1})", spell.FIND_IN_SET, proof="strings"),
    Function("instr", (2, 4), _found, rule.fixed(INT), "instr({0}, {1})", "CAST(instr({0}, {1}) AS INTEGER)", proof="strings"),
    Function("locate", (2, 3), rule.strings_int, rule.fixed(INT), listed("locate({*})"), spell.locate, proof="strings"),
    Function("split_part", (3, 3), rule.strings_int, _TEXT, "split_part({0}, {1}, {2})", spell.split_part, proof="strings"),
    Function("substring_index", (3, 3), rule.strings_int, _TEXT, "substring_index({0}, {1}, {2})", spell.substring_index, spell.refuse_substring_index, "strings"),
    Function("translate", (3, 3), rule.strings, _TEXT, "translate({0}, {1}, {2})", "translate({0}, {1}, {2})", proof="strings"),
    Function("overlay", (3, 4), _overlay, _same_type, listed("overlay({*})"), spell.overlay, _not_binary, "strings"),
    Function("levenshtein", (2, 3), rule.strings_int, rule.fixed(INT), listed("levenshtein({*})"), spell.levenshtein, spell.refuse_levenshtein, "strings"),
    Function("jaro_winkler_similarity", (2, 2), rule.strings, rule.fixed(DOUBLE), "jaro_winkler_similarity({0}, {1})", "java_similarity({0}, {1})", proof="strings"),
    Function("soundex", (1, 1), rule.only_strings, _TEXT, "soundex({0})", spell.soundex, proof="strings"),
    Function("mask", (1, 5), _masked, _TEXT, listed("mask({*})"), spell.mask, spell.refuse_mask, "strings"),
    Function("quote", (1, 1), rule.strings, _TEXT, "quote({0})", "('''' || replace({0}, '''', '\\''') || '''')", proof="strings"),
    Function("luhn_check", (1, 1), rule.strings, rule.fixed(BOOLEAN), "luhn_check({0})", spell.LUHN, proof="strings"),
    Function("is_valid_utf8", (1, 1), rule.strings, rule.fixed(BOOLEAN), "is_valid_utf8({0})", "CASE WHEN {0} IS NOT NULL THEN true END", proof="strings"),
    Function("make_valid_utf8", (1, 1), rule.strings, _TEXT, "make_valid_utf8({0})", "{0}", proof="strings"),
    Function("validate_utf8", (1, 1), rule.strings, _TEXT, "validate_utf8({0})", "{0}", proof="strings"),
    Function("try_validate_utf8", (1, 1), rule.strings, _TEXT, "try_validate_utf8({0})", "{0}", proof="strings"),
    Function("sentences", (1, 3), rule.strings, rule.fixed(array_of(_STRINGS)), listed("sentences({*})"), spell.SENTENCES, spell.refuse_sentences, "strings"),
    Function("format_string", (1, 1 << 20), lambda a: (as_string(a[0]), *a[1:]), _TEXT, listed("format_string({*})"), spell.format_string, spell.refuse_format_string, "conversions"),
    Function("base64", (1, 1), rule.binaries, _TEXT, "base64({0})", spell.BASE64, proof="conversions"),
    Function("unbase64", (1, 1), rule.strings, rule.fixed(BINARY), "unbase64({0})", "from_base64({0})", proof="conversions"),
    Function("to_base32", (1, 1), rule.binaries, _TEXT, "to_base32({0})", "java_to_base32({0})", proof="conversions"),
    Function("from_base32", (1, 1), rule.strings, rule.fixed(BINARY), "from_base32({0})", spell.FROM_BASE32, proof="conversions"),
    Function("hex", (1, 1), _hexed, _TEXT, "hex({0})", "hex({0})", proof="conversions"),
    Function("unhex", (1, 1), rule.strings, rule.fixed(BINARY), "unhex({0})", spell.UNHEX, proof="conversions"),
    Function("encode", (2, 2), rule.strings, rule.fixed(BINARY), "encode({0}, {1})", spell.encode, spell.refuse_charset, "conversions"),
    Function("decode", (2, 2), rule.binary_strings, _TEXT, "decode({0}, {1})", spell.decode, spell.refuse_charset, "conversions"),
)  # fmt: skip
