"""Expressions over the table of texts (`edge_texts`), and one or more for each function of it.

`TEXTS[group]` are native and equal Spark, or are refused by Spark too. `TEXTS_REFUSED` run on Spark
with our types. `NATIVE_SCALARS` and `REFUSED_SCALARS` join `function_cases`: over its own table.
"""

from __future__ import annotations

TEXTS: dict[str, list[str]] = {
    "casts": [
        "CAST(num AS INT)", "CAST(num AS TINYINT)", "CAST(num AS BIGINT)", "CAST(num AS DOUBLE)", "CAST(num AS FLOAT)", "CAST(num AS DECIMAL(5,2))", "CAST(num AS DECIMAL(38,6))", "CAST(num AS DECIMAL(38,0))", "CAST(num AS BOOLEAN)", "CAST(day AS DATE)", "CAST(s AS DATE)", "CAST(num AS DATE)",
        "CAST(s AS BINARY)", "CAST(s AS INT)", "CAST(bin AS STRING)", "CAST(bim AS STRING)", "CAST(d AS INT)", "CAST(d AS BIGINT)", "CAST(d AS TINYINT)", "CAST(f AS INT)", "CAST(f AS BIGINT)", "CAST(d AS FLOAT)", "CAST(d2 AS FLOAT)", "CAST(d AS DECIMAL(10,2))",
        "CAST(d AS DECIMAL(38,18))", "CAST(d2 AS DECIMAL(20,6))", "CAST(d AS BOOLEAN)", "CAST(f AS BOOLEAN)", "CAST(d103 AS BOOLEAN)", "CAST(d103 AS STRING)", "CAST(d22 AS STRING)", "CAST(d3818 AS STRING)", "CAST(d180 AS STRING)", "CAST(b AS DOUBLE)", "CAST(b AS FLOAT)", "CAST(b AS DECIMAL(3,1))",
        "CAST(b AS DECIMAL(2,2))", "TRY_CAST(num AS INT)", "TRY_CAST(num AS BIGINT)", "TRY_CAST(num AS DOUBLE)", "TRY_CAST(num AS FLOAT)", "TRY_CAST(num AS DECIMAL(5,2))", "TRY_CAST(num AS BOOLEAN)", "TRY_CAST(day AS DATE)", "TRY_CAST(num AS DATE)", "TRY_CAST(s AS DATE)", "TRY_CAST(d AS INT)", "TRY_CAST(d AS DECIMAL(10,2))",
        "TRY_CAST(l AS INT)", "TRY_CAST(d103 AS TINYINT)", "TRY_CAST(d103 AS DECIMAL(4,2))", "TRY_CAST(b AS DECIMAL(2,2))", "TRY_CAST(bim AS STRING)",
    ],
    "strings": [
        "jaro_winkler_similarity(s, t)", "jaro_winkler_similarity(t, s)", "jaro_winkler_similarity(s, s)", "jaro_winkler_similarity(s, concat(t, s))", "jaro_winkler_similarity(num, day)", "jaro_winkler_similarity(s, reverse(s))", "jaro_winkler_similarity(s, num)", "sentences(s)", "sentences(t, 'en')", "sentences(concat(initcap(s), '. ', initcap(t), '! ', s))",
        "sentences(concat_ws('. ', 'One two, Three', 'Mr', 'Smith', s), 'en', 'US')", "to_number(num, '$999.99')", "try_to_number(num, '999.99MI')", "try_to_number(num, 'S9,999.999')", "try_to_number(s, '$99')", "try_to_number(concat(num, t), '999PR')", "hmac('k', s)", "hmac(s, t)", "hmac(bin, bim, 'md5')", "hmac(bim, s, 'SHA-1')", "hmac(num, bin, 'sha224')", "hmac(t, t, 'Sha-384')", "hmac(s, bim, 'sha-512')",
        "CAST(num AS DECIMAL(20,6))", "TRY_CAST(num AS DECIMAL(20,6))", "CAST(d AS DECIMAL(20,6))", "CAST(d AS DECIMAL(38,0))", "TRY_CAST(d AS DECIMAL(20,6))", "upper(s)", "lower(s)", "initcap(s)", "upper(t)", "lower(t)", "initcap(t)", "trim(s)",
        "ltrim(s)", "rtrim(s)", "btrim(s)", "trim('ab' FROM s)", "trim(LEADING t FROM s)", "trim(TRAILING 'e' FROM s)", "ltrim('a', s)", "rtrim(t, s)", "btrim(s, t)", "lpad(s, 5, '*')", "lpad(s, n, t)", "lpad(s, n)",
        "rpad(s, 5, '日本')", "rpad(s, n, t)", "rpad(s, 3, '')", "reverse(s)", "repeat(s, n)", "repeat(s, 2)", "space(n)", "ascii(s)", "ascii(t)", "chr(l)", "chr(i)", "concat_ws('-', s, t)",
        "concat_ws(t, s, num, s)", "concat_ws('-')", "concat_ws(s)", "elt(n, s, t, num)", "elt(CASE WHEN n BETWEEN 1 AND 3 THEN n END, s, t, num)", "find_in_set(t, s)", "find_in_set('b', 'a,b')", "instr(s, t)", "instr(s, 'b')", "locate(t, s)", "locate(t, s, n)", "locate('a', s, 2)",
        "locate('', s, n)", "position('b' IN s)", "position('b', s, 2)", "split_part(s, '.', 2)", "split_part(s, t, n)", "split_part(s, ',', -1)", "substring_index(s, '.', n)", "substring_index(s, 'X', -1)", "substring_index(s, '.', 2)", "substring_index(s, 'ab', n)", "translate(s, 'abc', 'xy')", "translate(s, 'aab', 'xyz')",
        "translate(s, t, 'xy')", "translate(s, '日', 'x')", "overlay(s PLACING 'XX' FROM 2)", "overlay(s PLACING t FROM 2 FOR 1)", "overlay(s, t, n, 2)", "overlay(s, t, n)", "substring(s, n, 2)", "substring(s, n)", "substring(s, -3, 2)", "substring(s, -3)", "substring(s, n, n)", "substring(bin, n, 2)",
        "substring(bin, -2, 3)", "substring(bin, 2)", "left(bin, 2)", "left(s, n)", "right(s, n)", "length(bin)", "length(s)", "octet_length(s)", "octet_length(bin)", "bit_length(s)", "bit_length(bin)", "levenshtein(s, t)",
        "levenshtein(s, t, 3)", "soundex(s)", "soundex(t)", "mask(s)", "mask(t, 'Q', 'q')", "mask(s, NULL, 'x', NULL)", "quote(s)", "luhn_check(s)", "luhn_check(num)", "is_valid_utf8(s)", "make_valid_utf8(s)",
        "validate_utf8(s)", "try_validate_utf8(s)", "concat(bin, bim)", "concat(bin, s)", "concat()", "contains(s, t)",
    ],
    "patterns": [
        "s LIKE 'a\\\\%b'", "s LIKE t", "s LIKE num", "t LIKE s", "s LIKE '%\\\\%'", "s LIKE '\\\\%%'", "s LIKE 'a/%b%' ESCAPE '/'", "s LIKE t ESCAPE '/'", "s NOT LIKE '%a%'", "s ILIKE 'A%'", "s ILIKE '%É%'", "s ILIKE t",
        "s NOT ILIKE '%ß%'", "s LIKE ANY ('a%', '%b', t)", "s NOT LIKE ALL ('a%', '%b')", "s NOT LIKE ANY ('a%', '%b')", "s LIKE ALL ('%a%', NULL)", "s ILIKE ANY ('A%', '%B')", "s RLIKE 'a'", "s RLIKE '^[a-c]+$'", "s RLIKE 'b$'", "s RLIKE '.'", "s RLIKE '^.$'", "s RLIKE '\\\\d+'",
        "s RLIKE '\\\\s'", "s RLIKE '\\\\S\\\\s\\\\S'", "s RLIKE '[^a-z]'", "s RLIKE 'a|b'", "s RLIKE '(a|bc){2,3}'", "s RLIKE 'line$'", "s RLIKE '日.語'", "s RLIKE '\\\\w+@\\\\w+'", "s RLIKE ''", "regexp_like(s, 'x*')", "regexp_extract(s, '([a-z]+)')", "regexp_extract(s, '([a-z]+)([0-9 ]+)?', 2)",
        "regexp_extract(s, '(a)|(b)', 2)", "regexp_extract(s, '[a-z]+', 0)", "regexp_extract(s, '([a-z])([A-Z])', 2)", "regexp_extract_all(s, '([a-z])[a-z]*')", "regexp_extract_all(s, '[a-z]+', 0)", "regexp_extract_all(s, '(a)|(b)', 2)", "regexp_replace(s, 'a', 'b')", "regexp_replace(s, '[^a-zA-Z]+', '-')", "regexp_replace(s, '(.)(.)', '$2$1')", "regexp_replace(s, '(a)|b', '[$1]')", "regexp_replace(s, '\\\\s', '')", "regexp_replace(s, '^a', 'x')",
        "regexp_replace(s, 'a', 'b', 1)", "regexp_replace(s, 'a', '&')", "regexp_count(s, 'a')", "regexp_count(s, '[a-z]{2}')", "regexp_substr(s, '[A-Z][a-z]+')", "regexp_instr(s, 'b')", "regexp_instr(s, '[0-9.]+')", "split(s, ',')", "split(s, '[,X]')", "split(s, '')", "split(s, '\\\\.')", "split(s, 'X', 2)",
        "split(s, ',', 3)", "split(s, ',', -1)", "split(s, ' +')", "split(s, ',', 1)", "split(s, '\\\\|')", "split(s, '\\\\.', 2)", "split(s, 'a|b')",
    ],
    "numbers": [
        "CAST(d AS STRING)", "CAST(d2 AS STRING)", "concat(d2, 'x')", "round(d)", "round(d, 2)", "round(d2, 3)", "round(d2, 0)", "round(d2, 10)", "round(d103)", "round(d103, 1)", "round(d103, -2)", "round(d103, 5)",
        "round(d3818, 2)", "pmod(d103, d22)", "try_multiply(d103, d22)", "round(d180, -2)", "round(d22, 1)", "round(i, -1)", "round(ti, -1)", "round(ti, -2)", "round(si, -3)", "round(l, -2)", "round(i, 2)", "round(i)", "round(num)",
        "bround(d)", "bround(d2, 2)", "bround(d103)", "bround(d103, 1)", "bround(d103, -1)", "bround(i, -1)", "bround(ti, -1)", "bround(d3818, 3)", "ceil(d)", "ceil(d2)", "ceil(f)", "ceil(i)",
        "ceil(d103)", "ceil(d103, 1)", "ceil(d103, -1)", "ceil(d103, 4)", "ceil(d2, 1)", "ceil(i, -1)", "ceil(num)", "floor(d)", "floor(d2)", "floor(l)", "floor(d103, 1)", "floor(d103, -2)",
        "floor(d3818, 3)", "rint(d)", "rint(d2)", "sign(d)", "sign(i)", "signum(d103)", "pmod(i, n)", "pmod(l, 7)", "pmod(l, -7)", "pmod(ti, si)", "pmod(d, d2)", "i % n",
        "d % d2", "f % 2", "d103 % d22", "d103 % 3", "d3818 % d103", "i % 2.5", "mod(l, i)", "i div n", "d103 div d22", "d103 div 7", "d180 div d103", "d3818 div 3",
        "try_add(i, n)", "try_add(l, l)", "try_add(ti, ti)", "try_subtract(l, 1)", "try_subtract(d, d2)", "try_multiply(i, i)", "try_multiply(l, l)", "try_divide(i, n)", "try_divide(d, d2)", "try_divide(d103, d22)", "try_mod(i, n)", "try_mod(d, d2)",
        "try_mod(d103, d22)", "positive(i)", "positive(num)", "isnan(d)", "isnan(f)", "isnan(i)", "nanvl(d, d2)", "nanvl(f, 1.5F)", "nanvl(f, d)", "nanvl(i, 2)", "greatest(d, d2)", "greatest(d, d2, 0)",
        "greatest(f, 0.0F)", "least(d, d2, -0.0D)", "least(f, d)", "greatest(b, true)", "least(bin, bim)", "greatest(s, t, num)", "factorial(n)", "factorial(i)", "width_bucket(d, 0, 10, 5)", "width_bucket(d2, 10, -3, 4)", "width_bucket(d2, d, 5, n)", "width_bucket(d2, -5.5, 100, l)",
        "bin(l)", "bin(i)", "conv(s, 16, 10)", "conv(num, 10, 16)", "conv('100', 2, 10)", "conv(i, 10, 36)", "hex(l)", "hex(i)", "hex(s)", "hex(bin)", "hex(d103)", "hex(b)",
        "unhex(s)", "unhex(num)", "base64(bin)", "base64(s)", "unbase64(s)", "unbase64(base64(bim))", "encode(s, 'utf-8')", "encode(s, 'US-ASCII')", "decode(bin, 'UTF-8')", "decode(bim, 'us-ascii')", "decode(i, 1, 'one', NULL, 'none', 'other')", "decode(s, 'a', 1, 'b', 2)",
        "format_number(i, 0)", "format_number(d103, 2)", "format_number(d103, 0)", "format_number(d180, 1)", "format_number(d103, 5)", "format_number(l, 2)", "format_string('%s-%d%%', s, i)", "format_string('%s', b)", "printf('x%sy', num)", "i & n", "i | 5", "i ^ n",
        "l & i", "ti | si", "i & num", "~i", "~l", "~ti", "shiftleft(i, n)", "shiftleft(l, n)", "shiftleft(ti, 3)", "i << 2", "shiftright(i, n)", "shiftright(l, n)",
        "l >> 3", "shiftrightunsigned(i, n)", "shiftrightunsigned(l, n)", "bit_count(i)", "bit_count(l)", "bit_count(ti)", "bit_count(b)", "bit_get(i, 3)", "bit_get(l, n)", "getbit(ti, 7)", "bitmap_bit_position(l)", "bitmap_bucket_number(l)",
        "bitmap_bucket_number(i)", "bitmap_count(bin)", "i | n & 3 ^ 5", "i & 7 << 2",
    ],
    "formulas": [
        "sqrt(d)", "sqrt(d2)", "sqrt(num)", "cbrt(d)", "cbrt(d2)", "exp(d)", "exp(d2)", "expm1(d)", "expm1(d2)", "ln(d)", "ln(d2)", "log10(d)",
        "log10(d2)", "log2(d)", "log2(d2)", "log1p(d)", "log1p(d2)", "log(d)", "log(d, d2)", "log(2, i)", "log(10, l)", "power(d, d2)", "power(d2, 2)", "pow(i, 2)",
        "power(d2, 0.5)", "sin(d)", "sin(d2)", "cos(d)", "cos(d2)", "tan(d)", "tan(d2)", "cot(d)", "cot(d2)", "sec(d)", "sec(d2)", "csc(d)",
        "csc(d2)", "asin(d)", "asin(d2)", "acos(d)", "acos(d2)", "atan(d)", "atan2(d, d2)", "sinh(d)", "sinh(d2)", "cosh(d)", "tanh(d)", "tanh(d2)",
        "asinh(d)", "asinh(d2)", "acosh(d)", "acosh(d2)", "atanh(d)", "atanh(d2)", "degrees(d)", "radians(d2)", "hypot(d, d2)", "hypot(d2, i)", "e()", "pi()",
    ],
    "conversions_and_coercion": [
        "base64(encode(repeat('abc', 19), 'utf-8'))", "base64(encode(repeat('abc', 38), 'utf-8'))", "base64(encode(repeat(coalesce(s, 'x'), 38), 'utf-8'))", "f + 1.5F", "md5(s)", "md5(bin)", "sha1(s)", "sha(bin)", "sha2(s, 256)", "sha2(bin, 0)", "crc32(s)", "crc32(bim)",
        "url_encode(s)", "url_encode(t)", "url_decode(s)", "url_decode(url_encode(s))", "try_url_decode(s)", "parse_url(s, 'HOST')", "parse_url(s, 'PATH')", "parse_url(s, 'QUERY')", "parse_url(s, 'REF')", "parse_url(s, 'PROTOCOL')", "parse_url(s, 'FILE')", "parse_url(s, 'AUTHORITY')",
        "parse_url(s, 'USERINFO')", "parse_url(s, 'QUERY', 'q')", "try_parse_url(s, 'HOST')", "to_binary(s)", "to_binary(s, 'utf-8')", "to_binary(s, 'base64')", "try_to_binary(s)", "try_to_binary(s, 'hex')", "typeof(d103)", "typeof(array(1))", "collation(s)", "nullifzero(i)",
        "nullifzero(d)", "nullifzero(num)", "zeroifnull(i)", "zeroifnull(d103)", "equal_null(s, t)", "equal_null(i, NULL)", "if(b, s, t)", "assert_true(i IS NOT NULL OR true)", "assert_true(b)", "assert_true(b, 'no')", "CASE WHEN i IS NULL OR true THEN 1 ELSE raise_error('x') END", "i + num",
        "num * d", "num - 1.5", "num / 2", "num % 3", "num div 2", "-num", "abs(num)", "to_char(d103, '99999.999')", "to_varchar(i, '999')", "num = 12", "num < d", "num <=> i", "num IN (1, 2)", "i IN ('1', '12')",
        "d IN ('1', num)", "coalesce(num, 1)", "coalesce(num, 1.5)", "coalesce(i, num)", "coalesce(NULL, num, 2)", "IF(b, num, i)", "nullif(num, 12)", "nullif(i, '5')", "CASE WHEN b THEN num ELSE d103 END", "coalesce(day, DATE'2024-01-01')", "day = DATE'2024-02-29'", "coalesce(num, true)",
        "coalesce(bin, s)", "s = bin", "NOT num", "num AND b", "left(s, num)", "substring(s, '2', 1.7)", "repeat(s, '2')", "length(i)", "length(d103)", "upper(b)", "lower(bin)", "concat(i, b, d103)",
        "concat_ws(',', i, b)", "s || i", "i + 1 || s", "1 + 2 || s", "s || d", "X'4142'", "X'41' || s", "length(X'0041')", "i BETWEEN '1' AND 3", "binary(s)", "decimal(num)", "int(num)",
        "boolean(num)", "double(num)", "bigint(d103)", "string(bin)", "float(num)", "decimal(d)", "CAST(num AS DECIMAL(10,2)) + 1", "num + num", "num + b", "greatest(num, 1)", "s || i + 1",
    ],
}  # fmt: skip

TEXTS_REFUSED: list[str] = [
    "CAST(d3838 AS STRING)", "contains(bin, bim)", "s RLIKE '[\\\\d.-]+'", "s RLIKE '(?i)abc'", "s RLIKE '\\\\bab'", "s RLIKE '^a|b$'", "regexp_replace(s, 'a', '\\\\\\\\')", "split(s, t)",
    "round(d, -1)", "round(f, 1)", "round(d3818, -3)", "conv(num, 10, -16)", "format_number(d, 2)", "format_string('%5d', i)",
    "sha2(s, n)", "hmac('k', s, t)", "parse_url(s, t)", "to_number(num, '$.99')", "try_to_number(num, '99,99')",
    "to_char(d103, '9.')", "sentences(s, 'de')", "aes_decrypt(bin, '1234567890123456')",
]  # fmt: skip
