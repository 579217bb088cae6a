"""SQL texts that do more than read tables, by what they would reach."""

from __future__ import annotations

SCRIPTS = {
    "a nested comment that is a hint to one parser": (
        "SELECT /* /*+ */ TRANSFORM(n_name) USING 'sh -c \"id\"' AS (x) -- */ n_name\n"
        "FROM nation TABLESAMPLE (2 ROWS)"
    ),
    "transform": "SELECT TRANSFORM(n_name) USING 'id' AS (x) FROM nation",
    "map": "FROM nation MAP n_name USING 'id' AS (x)",
    "reduce": "FROM nation REDUCE n_name USING 'id' AS (x)",
    "in a CTE": "WITH c AS (SELECT TRANSFORM(n_name) USING 'id' FROM nation) SELECT * FROM c",
    "in a subquery": "SELECT 1 WHERE EXISTS (SELECT TRANSFORM(n_name) USING 'id' FROM nation)",
    "between comments": "SELECT TRANSFORM/**/(n_name)/**/USING/**/'id' FROM nation",
    "a raw text": "SELECT TRANSFORM(n_name) USING r'id' FROM nation",
}
REFLECTION = {
    "a comment that a backslash continues": (
        "SELECT 1 AS a -- x\\\n /*\n"
        " , java_method('java.lang.System','getProperty','user.home') AS b -- */\n"
        "FROM nation TABLESAMPLE (2 ROWS)"
    ),
    "reflect": "SELECT reflect('java.lang.System','getProperty','user.home')",
    "try_reflect": "SELECT try_reflect('java.lang.System','getProperty','user.home')",
    "quoted": "SELECT `reflect`('java.lang.System','getProperty','user.home')",
    "qualified": "SELECT system.builtin.reflect('java.lang.System','getProperty','user.home')",
    "behind a comment": "SELECT reflect/* */('java.lang.System','getProperty','user.home')",
    "named by a text": (
        "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System','getProperty','user.home')"
    ),
    "in a lambda": "SELECT transform(array(1), x -> reflect('java.lang.System','nanoTime'))",
    "in a window": (
        "SELECT sum(n_nationkey) OVER (PARTITION BY reflect('java.lang.System','nanoTime')) "
        "FROM nation"
    ),
    "in a filter": (
        "SELECT count(*) FILTER (WHERE java_method('java.lang.System','lineSeparator') = '') "
        "FROM nation"
    ),
    "in VALUES": "VALUES (java_method('java.lang.System','getProperty','user.home'))",
    "in ORDER BY": "SELECT * FROM nation ORDER BY reflect('java.lang.System','nanoTime')",
    "in a pipe": "FROM nation |> EXTEND reflect('java.lang.System','nanoTime') AS x",
    "in a join": (
        "SELECT 1 FROM nation a JOIN nation b ON reflect('java.lang.System','nanoTime') = '1'"
    ),
}
FILES = {
    "a path": "SELECT * FROM parquet.`/etc`",
    "a quoted format": "SELECT * FROM `parquet`.`/etc`",
    "text": "SELECT * FROM text.`/etc/passwd`",
    "a format with capitals": "SELECT * FROM CSV.`/etc/passwd`",
    "a class": "SELECT * FROM `org.apache.spark.sql.parquet`.`/etc`",
    "named by a text": "SELECT * FROM IDENTIFIER('parquet.`/etc`')",
    "a URL": "SELECT * FROM s3://bucket/key",
    "a schema for XML": (
        "SELECT from_xml('<a/>', 'a INT', map('rowValidationXSDPath', '/etc/passwd'))"
    ),
    "descriptors": "SELECT from_protobuf(n_comment, 'M', '/etc/passwd') FROM nation",
    "a schema at a URL": (
        "SELECT from_avro(n_comment, 'x', map('avroSchemaUrl', '/etc/passwd')) FROM nation"
    ),
    "a table function": "SELECT * FROM read_files('/etc')",
    "a table of Spark's catalog": "SELECT * FROM spark_catalog.default.nation",
    "logs of workers": "SELECT * FROM python_worker_logs()",
}
COMMANDS = {
    "set": "SET spark.sql.ansi.enabled = false",
    "a script": "BEGIN SELECT 1; END",
    "immediate": "EXECUTE IMMEDIATE 'SELECT 1'",
    "insert": "INSERT INTO nation VALUES (1)",
    "create": "CREATE TABLE x AS SELECT 1",
    "a view": "CREATE TEMPORARY VIEW x AS SELECT 1",
    "drop": "DROP TABLE nation",
    "jar": "ADD JAR '/tmp/x.jar'",
    "call": "CALL system.p()",
    "cache": "CACHE TABLE nation",
    "two statements": "SELECT 1; SELECT 2",
    "a directory": "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1",
}
_R = "WITH RECURSIVE r MAX RECURSION LEVEL 9 AS (SELECT 1 AS n)"
# sqlglot cannot parse these, so that their tokens are all that the planner knows.
UNPARSED = {
    "a path": f"{_R} SELECT * FROM r, parquet.`/etc`",
    "a class": f"{_R} SELECT * FROM r JOIN `org.apache.spark.sql.parquet`.`/etc`",
    "reflection": f"{_R} SELECT reflect('java.lang.System','nanoTime') FROM r",
    "named by a text": f"{_R} SELECT IDENTIFIER('reflect')('java.lang.System','nanoTime') FROM r",
    "a script": f"{_R} SELECT TRANSFORM(n) USING 'cat' AS (x) FROM r",
    "insert": f"{_R} INSERT INTO nation SELECT n, 'a', 'b' FROM r",
    "two statements": f"{_R} SELECT n FROM r; DROP TABLE nation",
}
BYPASSES = {
    f"{kind}: {name}": sql
    for kind, texts in (
        ("script", SCRIPTS),
        ("reflection", REFLECTION),
        ("file", FILES),
        ("command", COMMANDS),
        ("unparsed", UNPARSED),
    )
    for name, sql in texts.items()
}
