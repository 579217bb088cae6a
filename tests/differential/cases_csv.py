"""Which expressions prove the functions of CSV, over the columns of table `cv`: `line` holds lines
of CSV, `odd` also lines with quotes, escapes and line ends where no writer puts them.
"""

from __future__ import annotations

_TYPES = "a STRING, b INT, c DOUBLE, d BOOLEAN"

NATIVE: dict[str, list[str]] = {
    "from_csv": [
        f"from_csv(line, '{_TYPES}')", f"from_csv(odd, '{_TYPES}')", "from_csv(line, 'a STRING')", "from_csv(odd, 'a STRING, b STRING, c STRING')", "from_csv(line, 'a TINYINT, b SMALLINT, c BIGINT, d DECIMAL(10,2)')",
        "from_csv(line, 'a DATE, b TIMESTAMP, c TIMESTAMP_NTZ, d DATE')", "from_csv(odd, 'a TIMESTAMP, b DATE')", "from_csv(odd, 'a DECIMAL(3,3), b DECIMAL(38,0)')", f"from_csv(replace(line, ',', ';'), '{_TYPES}', map('sep', ';'))",
        f"from_csv(replace(odd, ',', '\\t'), '{_TYPES}', map('delimiter', '\\t', 'quote', '\\''))", f"from_csv(odd, '{_TYPES}', map('nullValue', 'NA'))", f"from_csv(odd, '{_TYPES}', map('escape', '\"', 'SEP', ','))", f"from_csv(odd, '{_TYPES}', map('escape', '/', 'sep', '|'))",
        f"from_csv(word, '{_TYPES}')", "from_csv(word, 'a DOUBLE')", "from_csv(word, 'a DECIMAL(10,2)')", "from_csv(word, 'a BIGINT')", "from_csv(word, 'a BOOLEAN')", "from_csv(word, 'a DATE')", "from_csv(word, 'a TIMESTAMP')", "from_csv(concat('1,', word), 'a INT, b TIMESTAMP_NTZ')",
        "from_csv(to_csv(struct(line, odd, word)), 'a STRING, b STRING, c STRING')",
    ],
    "to_csv": [
        "to_csv(struct(line))", "to_csv(struct(word))", "to_csv(struct(odd, line, id, word))", "to_csv(struct(word, odd))", "to_csv(struct(id, word), map('sep', ';'))", "to_csv(struct(odd, id), map('sep', '|', 'quote', '\\'', 'escape', '\\''))", "to_csv(struct(odd, word), map('nullValue', 'NA'))",
        "to_csv(struct(word, line), map('escape', '\"'))", "to_csv(struct(odd, word), map('escape', '/', 'quote', '\\'', 'sep', '\\t'))", "to_csv(struct(word, num, dbl, CAST(dbl AS FLOAT), dec), map('sep', '^'))", "to_csv(struct(num, dbl, dec, day, moment, CAST(moment AS TIMESTAMP_NTZ), num > 0))",
        "to_csv(struct(day, moment, day - DATE'2020-01-01', word), map('sep', '^'))", "to_csv(struct(CAST(num AS TINYINT) AS a, dec))", "to_csv(CASE WHEN id % 2 = 0 THEN struct(word, odd) END)", "to_csv(struct(num))", "to_csv(struct(num), map('nullValue', 'null'))", "to_csv(from_csv(odd, 'a STRING, b STRING'))",
    ],
    "schema_of_csv": [
        f"schema_of_csv('{line}')"
        for line in ("1", "-1,+1,007", "2147483648,-2147483648,999999999999999999", "1.5,-0.25,123456789.000001,0.10", "true,FALSE,True", "a,b c,Hello World,x_y,de,f,d,e", "2024-02-29,1999-12-31", "2024-02-29 10:11:12,2024-02-29T23:59:59", ",1,", "now,today,epoch,tomorrow", "yes,no,t,null", "Mon,pi,AM")
    ]
    + ["schema_of_csv('1;a', map('sep', ';'))", "schema_of_csv('ab,x', map('nullValue', 'x'))"],
}  # fmt: skip

REFUSED: dict[str, list[str]] = {
    "from_csv": ["from_csv(line, 'a INT, b STRING', map('mode', 'FAILFAST'))", "from_csv(line, 'a FLOAT')", "from_csv(line, 'a INT, _corrupt_record STRING')", "from_csv(line, 'a STRING, A INT')", "from_csv(line, 'a STRING', map('sep', 'ab'))", "from_csv(line, 'a DATE', map('dateFormat', 'yyyy'))", "from_csv(line, 'a STRING', map('sep', ',', 'delimiter', ';'))"],
    "to_csv": ["to_csv(struct(array(id)))", "to_csv(struct(id, CAST(line AS BINARY)))", "to_csv(struct(id), map('quoteAll', 'true'))", "to_csv(struct(id), map('nullValue', '\"x'))", "to_csv(struct(CAST(dec AS DECIMAL(38,20))))"],
    "schema_of_csv": ["schema_of_csv('1e3')", "schema_of_csv('99999999999999999999')", "schema_of_csv('\"1\",x')", "schema_of_csv(concat('1', ',2'))", "schema_of_csv('2024-02-30')", "schema_of_csv('NaN')", "schema_of_csv('12:30')"],
}  # fmt: skip
