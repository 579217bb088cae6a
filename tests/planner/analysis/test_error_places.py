"""Every refusal of the planner says where: line and column of what is at fault.

A case is a query whose construct at fault stands behind the mark `⟦`, which is taken out before
the query is planned; an error must be placed exactly there.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from stagecoach import planner
from stagecoach.planner.catalog import MappingCatalog
from stagecoach.planner.errors import (
    AnalysisError,
    ForbiddenSqlError,
    ParseError,
    SqlError,
    UnsupportedSqlError,
)
from stagecoach.planner.options import PlannerOptions
from stagecoach.planner.plan.stages import ParameterSpec
from stagecoach.planner.planning import plan_query
from stagecoach.planner.project_function import ProjectFunction
from stagecoach.planner.types import INT, STRING, TIMESTAMP
from tests.planner.catalogs import table

TABLES = MappingCatalog(
    [
        table(
            "t",
            "i int; l bigint; d double; c decimal(10,2); s string; b boolean; dt date; "
            "ts timestamp; bin binary; arr array<int>; m map<string,int>; st struct<a:int,b:string>; "
            "am array<map<string,int>>",
        ),
        table("u", "i int; s string; x int; y string; dt date; m map<string,int>"),
    ],
    [
        ProjectFunction("shout", "m:f", (STRING, INT), STRING, deterministic=True),
        ProjectFunction("hour_of", "m:g", (TIMESTAMP,), INT, deterministic=True),
    ],
)
MARK = "⟦"

PROJECT_FUNCTIONS = {
    "SELECT ⟦shout(s, times => 1) FROM t": "takes its arguments by position: shout(string, int)",
    "SELECT hour_of(⟦i) FROM t": "argument 1 of function 'hour_of' must be timestamp, found int",
    "SELECT i,\n  ⟦shout(s) FROM t": "function 'shout' of the catalog takes 2 arguments, not 1: shout(string, int)",
    "SELECT i\nFROM t WHERE shout(s, i,\n  1) = 'A' AND ⟦shoot(s)": "function 'shoot' does not exist; did you mean 'shout'",
    "SELECT shout(s,\n  ⟦dt) FROM t": "argument 2 of function 'shout' must be int, found date; write a CAST",
    "SELECT shout(⟦arr,\n  1) FROM t": "argument 1 of function 'shout' must be string, found array<int>",
}
NAMES = {
    "SELECT\n  i,\n  ⟦nope\nFROM t": "column 'nope' not found",
    "SELECT i\nFROM t\nWHERE l > 1\n  AND ⟦nope = 1": "column 'nope' not found",
    "SELECT i\nFROM t AS\n  ⟦cross": "'cross' names a relation only in backticks",
    "SELECT i\nFROM ⟦nope": "table 'nope' is not in the catalog",
    "WITH unused AS (SELECT ⟦nope FROM t)\nSELECT i FROM t": "column 'nope' not found",
    "WITH a AS (SELECT i FROM t), unused AS (\n  SELECT x FROM a JOIN ⟦nope)\nSELECT i FROM a": "table 'nope' is not in the catalog",
    "SELECT (WITH unused AS (SELECT ⟦nope FROM t) SELECT max(i) FROM t) AS m": "column 'nope' not found",
    "SELECT i FROM t\nJOIN\n  ⟦nope ON true": "table 'nope' is not in the catalog",
    "SELECT *\nFROM t JOIN u\n  USING (⟦l)": "column 'l' not found",
    "SELECT *\nFROM t JOIN u\n  USING (i,\n    ⟦nope)": "column 'nope' not found",
    "SELECT t.i\nFROM t JOIN u ON\n  t.i = ⟦u.nope": "column 'nope' in 'u' not found",
    "SELECT\n  ⟦i\nFROM t JOIN u ON t.i = u.i": "column 'i' is ambiguous",
    "SELECT i,\n  ⟦q.*\nFROM t": "table or alias 'q' not found",
    "SELECT\n  ⟦i FROM t JOIN t AS v ON true JOIN u USING (i)": "it is in USING, too",
    "SELECT 1,\n ⟦*": "* needs a FROM clause",
    "SELECT i,\n  ⟦i.*\nFROM t": "has no members for *",
    "SELECT * EXCEPT (i,\n  ⟦nope) FROM u": "column 'nope' not found",
    "SELECT * EXCEPT (i,\n  ⟦i) FROM u": "EXCEPT names 'i' twice",
    "SELECT u.* EXCEPT (\n  ⟦nope) FROM u": "column 'nope' of EXCEPT is not there",
    "SELECT st.a,\n  ⟦st.nope\nFROM t": "nope",
    "SELECT i\nFROM t\nORDER BY l,\n  ⟦nope": "column 'nope' not found",
    "SELECT max(i)\nFROM t\nGROUP BY\n  ⟦nope": "column 'nope' not found",
    "SELECT max(i) OVER (\n  PARTITION BY ⟦nope) FROM t": "column 'nope' not found",
    "SELECT max(i) OVER (ORDER BY\n  ⟦nope) FROM t": "column 'nope' not found",
    "SELECT\n  ⟦sum(i) OVER w FROM t": "window 'w' is not in the WINDOW clause",
    "SELECT sum(i) OVER w FROM t\nWINDOW w AS (ORDER BY i),\n  ⟦w AS (ORDER BY l)": "window 'w' is defined twice",
    "WITH a AS (SELECT 1),\n  ⟦a AS (SELECT 2)\nSELECT * FROM a": "WITH defines 'a' more than once",
    "WITH ⟦a(x, y) AS (SELECT 1)\nSELECT * FROM a": "alias 'a' names 2 of 1 columns",
    "SELECT *\nFROM (SELECT 1, 2)\n  AS ⟦q(a)": "alias 'q' names 1 of 2 columns",
    "SELECT\n  i +\n  ⟦:nope\nFROM t": "parameter ':nope' has no value",
    "SELECT i FROM t\nWHERE i =\n  ⟦?": "parameter ? number 1 has no value",
    "SELECT (SELECT\n  ⟦nope\nFROM u) FROM t": "column 'nope' not found",
    "SELECT i FROM t WHERE EXISTS (\n  SELECT 1 FROM u WHERE u.i = ⟦t.nope)": "column 'nope' in 't' not found",
    "SELECT transform(arr,\n  e -> e + ⟦nope) FROM t": "column 'nope' not found",
    "SELECT *\nFROM t, LATERAL (SELECT ⟦t.nope) q": "column 'nope' in 't' not found",
    "SELECT v\nFROM t\nLATERAL VIEW explode(⟦nope) q AS v": "column 'nope' not found",
    "SELECT m[\n  ⟦nope]\nFROM t": "[UNRESOLVED_MAP_KEY.WITH_SUGGESTION] column 'nope' not found",
    "SELECT i AS a, l AS a,\n  ⟦a + 1\nFROM t": "column 'a' is ambiguous: several select items have that name",
    "SELECT i,\n⟦FROM t": "[TRAILING_COMMA_IN_SELECT] the select list ends with a comma",
    "SELECT i + 1 AS a,\n  sum(⟦a) FROM t GROUP BY i": "the aggregate 'sum' reads the select item 'a'",
    "SELECT i FROM t\nLIMIT 1\nOFFSET ⟦2147483647": "[SUM_OF_LIMIT_AND_OFFSET_EXCEEDS_MAX_INT]",
}
GROUPS = {
    "SELECT i,\n  ⟦l,\n  sum(d)\nFROM t GROUP BY i": "column 'l' is neither aggregated nor in GROUP BY",
    "SELECT i, sum(d)\nFROM t\nGROUP BY i\nHAVING\n  ⟦l > 1": "column 'l' is neither aggregated nor in GROUP BY",
    "SELECT i\nFROM t\nGROUP BY i\nORDER BY\n  ⟦l": "column 'l' is neither aggregated nor in GROUP BY",
    "SELECT i, max(l) FROM t GROUP BY i\nQUALIFY row_number() OVER (ORDER BY\n  ⟦d) = 1": "column 'd' is neither aggregated",
    "SELECT i FROM t\nWHERE\n  ⟦max(l) > 1": "aggregates are not allowed in WHERE; use HAVING",
    "SELECT i\nFROM t\nGROUP BY\n  ⟦max(l)": "aggregates are not allowed in GROUP BY",
    "SELECT i\nFROM t\nGROUP BY i,\n  ⟦3": "GROUP BY position 3 is not in the select list of 1 items",
    "SELECT i\nFROM t\nGROUP BY i,\n  ⟦-1": "GROUP BY position -1 is not in the select list",
    "SELECT max(i) FROM t\nGROUP BY\n ⟦1": "GROUP BY position 1 is an aggregate",
    "SELECT i FROM t\nGROUP BY\n  ⟦explode(arr)": "generator 'explode'",
    "SELECT i,\n  ⟦grouping(l)\nFROM t GROUP BY ROLLUP (i)": "grouping() must be a grouping column",
    "SELECT i,\n  ⟦grouping_id(i)\nFROM t GROUP BY i": "grouping_id() needs GROUPING SETS",
    "SELECT\n  ⟦grouping(i)\nFROM t": "grouping() needs GROUPING SETS",
    "SELECT\n  ⟦grouping(i, l)\nFROM t GROUP BY CUBE (i, l)": "function 'grouping' takes 1 argument, not 2",
    "SELECT i FROM t GROUP BY GROUPING SETS ((i),\n  (⟦nope))": "column 'nope' not found",
    "SELECT sum(\n  i), ⟦sum(max(l))\nFROM t": "an aggregate cannot be nested inside the aggregate 'sum'",
    "SELECT DISTINCT i\nFROM t\nORDER BY\n  ⟦l": "ORDER BY of a DISTINCT query must use its select items",
    "⟦SELECT DISTINCT\n  m\nFROM t": "DISTINCT cannot compare column 'm', which holds a map",
    "SELECT sum(i) FILTER (WHERE\n  ⟦max(l) > 1) FROM t": "aggregates are not allowed in FILTER",
    "SELECT i,\n  ⟦abs(i) FILTER (WHERE b)\nFROM t": "FILTER is only allowed after an aggregate",
    "SELECT i FROM t JOIN u ON\n  ⟦max(t.i) = u.i": "aggregates are not allowed in ON",
    "SELECT\n  ⟦mode(DISTINCT i)\nFROM t": "the aggregate 'mode' cannot have DISTINCT",
    "SELECT\n  ⟦count()\nFROM t": "count needs an argument",
    "SELECT first(i),\n  ⟦first(i, i)\nFROM t": "the second argument of 'first' must be true or false",
}
TYPES = {
    "SELECT i\nFROM t\nWHERE\n  ⟦s": "WHERE needs a boolean, found string",
    "SELECT t.i\nFROM t JOIN u\n  ON ⟦t.i": "ON needs a boolean, found int",
    "SELECT max(dt) FROM t\nHAVING\n  ⟦max(dt)": "HAVING needs a boolean, found date",
    "SELECT i FROM t\nQUALIFY\n  ⟦rank() OVER (ORDER BY i)": "QUALIFY needs a boolean",
    "SELECT i,\n  ⟦s + s\nFROM t": "arithmetic on string and string",
    "SELECT\n  ⟦i + b\nFROM t": "arithmetic on int and boolean",
    "SELECT\n  ⟦d DIV 2\nFROM t": "DIV on double and int",
    "SELECT\n  i, ⟦i = dt\nFROM t": "cannot compare int with date",
    "SELECT\n  ⟦CAST(s AS CHAR)\nFROM t": "[DATATYPE_MISSING_SIZE] the type CHAR needs a length",
    "SELECT\n  ⟦CAST(s AS UUID)\nFROM t": "[UNSUPPORTED_DATATYPE] Spark has no type 'UUID'",
    "SELECT\n  ⟦m = m\nFROM t": "cannot compare map<string,int>: maps have no order",
    "SELECT i FROM t\nWHERE ⟦m IN (m)": "IN compares map<string,int>",
    "SELECT greatest(i, l),\n  ⟦greatest(m, m)\nFROM t": "GREATEST of map<string,int>",
    "SELECT\n  ⟦max(am)\nFROM t": "max of array<map<string,int>>: maps have no order",
    "SELECT i\nFROM t\nORDER BY i,\n  ⟦m": "cannot sort by map<string,int>",
    "SELECT rank() OVER (ORDER BY\n  ⟦m) FROM t": "cannot sort by map<string,int>",
    "SELECT i,\n  ⟦max(i) OVER (PARTITION BY m)\nFROM t": "PARTITION BY map<string,int>",
    "SELECT i\nFROM t JOIN u\n  USING (⟦m)": "cannot compare map<string,int>",
    "SELECT i,\n  ⟦CAST(dt AS INT)\nFROM t": "cannot cast date to int; use unix_date(…)",
    "SELECT\n  ⟦CAST(DATE '2020-01-01' AS INT)": "cannot cast date to int; use unix_date(…)",
    "SELECT 1,\n  ⟦CAST(true AS DATE)": "cannot cast boolean to date",
    "SELECT\n  ⟦TRY_CAST(i AS DATE)\nFROM t": "cannot cast int to date; use date_from_unix_date(…)",
    "SELECT\n  ⟦int(dt)\nFROM t": "cannot cast date to int",
    "SELECT\n  ⟦CAST(arr AS INT)\nFROM t": "cannot cast array<int> to int",
    "SELECT\n  ⟦CAST(arr AS ARRAY<DATE>)\nFROM t": "cannot cast array<int> to array<date>",
    "SELECT\n  ⟦CAST(INTERVAL '1' DAY AS DOUBLE)": "cannot cast interval day to double",
    "SELECT\n  ⟦CASE WHEN i THEN 1 END\nFROM t": "case: expected a boolean, found int",
    "SELECT\n  ⟦CASE WHEN b THEN 1 ELSE dt END\nFROM t": "CASE mixes int and date",
    "SELECT coalesce(i, l),\n  ⟦coalesce(i, dt)\nFROM t": "COALESCE mixes int and date",
    "SELECT\n  upper(\n    ⟦substring(arr, 1))\nFROM t": "expected a string, found array<int>",
    "SELECT\n  ⟦upper(s, s)\nFROM t": "function 'upper' takes 1 argument, not 2",
    "SELECT\n  ⟦count_if(i)\nFROM t": "expected a boolean, found int",
    "SELECT\n  ⟦sum(dt)\nFROM t": "sum of date",
    "SELECT\n  ⟦year(i)\nFROM t": "expected a date, found int",
    "SELECT s,\n  ⟦extract(foo FROM dt)\nFROM t": "there is no field FOO in a date",
    "SELECT\n  ⟦s LIKE 'a' ESCAPE 'xy'\nFROM t": "ESCAPE takes one character, not 'xy'",
    "SELECT\n  ⟦(SELECT i, l FROM t)": "a scalar subquery must have one column, not 2",
    "SELECT i FROM t\nWHERE\n  ⟦i IN (SELECT i, x FROM u)": "IN compares 1 values with 2 columns",
    "SELECT\n  ⟦element_at(i, 1)\nFROM t": "element_at",
    "SELECT\n  ⟦transform(arr, (x, y, z) -> x)\nFROM t": "the lambda has 3 parameters",
    "SELECT\n  ⟦transform(arr, (x, x) -> x)\nFROM t": "the lambda names a parameter twice",
    "SELECT\n  ⟦size(i)\nFROM t": "found int",
    "SELECT sum(i) FILTER (WHERE\n  ⟦i) FROM t": "FILTER needs a boolean, found int",
    "SELECT\n  ⟦date_part('year', dt, 1)\nFROM t": "function 'date_part' takes 2 arguments",
    "SELECT\n  ⟦timestampdiff(dt, dt)\nFROM t": "function 'timestampdiff' takes 3 arguments",
    "SELECT i,\n  ⟦i - INTERVAL '1' DAY\nFROM t": "cannot add an interval to int",
}
CLAUSES = {
    "SELECT i\nFROM t\nLIMIT\n  ⟦'a'": "LIMIT is a string; it must be an int",
    "SELECT i\nFROM t\nLIMIT ⟦-1": "LIMIT is -1; it must be 0 or more",
    "SELECT i\nFROM t\nLIMIT ⟦NULL": "LIMIT is NULL; it must be a whole number",
    "SELECT i\nFROM t\nLIMIT 3\nOFFSET ⟦true": "OFFSET is a boolean; it must be an int",
    "SELECT i\nFROM t\nLIMIT\n  ⟦3000000000": "LIMIT is a bigint; it must be an int",
    "SELECT i\nFROM t\nLIMIT\n  ⟦i": "column 'i' not found",
    "(SELECT i FROM t)\nUNION ALL SELECT x FROM u\nLIMIT ⟦1.5": "LIMIT is a decimal(2,1)",
    "SELECT i, l\nFROM t\nORDER BY 1,\n  ⟦3": "ORDER BY position 3 is not in the select list of 2 items",
    "SELECT i\nFROM t\nORDER BY\n  ⟦-1": "ORDER BY position -1 is not in the select list",
    "SELECT i\nFROM t\nORDER BY i\nSORT BY ⟦l": "cannot be combined",
    "SELECT i FROM t\nUNION ALL\n⟦SELECT i, l FROM t": "UNION of 1 columns with 2 columns",
    "SELECT i FROM t\nUNION ALL\n⟦SELECT dt FROM t": "column 1 of UNION mixes int and date",
    "SELECT i FROM t\nEXCEPT\n⟦SELECT i, l FROM t": "EXCEPT of 1 columns with 2 columns",
    "SELECT m FROM t\nINTERSECT\n⟦SELECT m FROM t": "column 'm' is a map",
    "SELECT i FROM t UNION SELECT x FROM u\nORDER BY\n  ⟦max(i)": "aggregates are not allowed in ORDER BY of a set operation",
    "SELECT *\nFROM VALUES (1),\n  ⟦(1, 2)": "row 2 of VALUES has 2 items, the first one 1",
    "SELECT *\nFROM VALUES ⟦(1),\n  (DATE '2020-01-01')": "column 1 of VALUES mixes int and date",
    "SELECT *\nFROM VALUES (1),\n  ⟦(max(1))": "aggregate and window functions are not allowed in VALUES",
    "SELECT * FROM\n  ⟦range()": "table function 'range' takes 1 to 4 arguments, not 0",
    "SELECT * FROM\n  range(1,\n  2, ⟦0)": "the step of 'range' must not be 0",
    "SELECT * FROM\n  range(⟦NULL)": "an argument of 'range' is NULL",
    "SELECT *\nFROM u PIVOT (max(i)\n  FOR ⟦nope IN ('a'))": "column 'nope' not found",
    "SELECT *\nFROM u PIVOT (max(i) FOR s IN ('a',\n  ⟦x))": "in PIVOT is not a constant",
    "SELECT *\nFROM u PIVOT (max(i) FOR (s, y) IN (\n  ⟦'a'))": "a value of PIVOT has 1 parts, not 2",
    "SELECT *\nFROM u PIVOT (\n  ⟦abs(i) FOR s IN ('a'))": "PIVOT needs an aggregate",
    "SELECT *\nFROM u UNPIVOT (⟦v FOR n IN (i, s))": "the columns of UNPIVOT mix int and string",
    "SELECT *\nFROM u UNPIVOT (v FOR n IN (i,\n  ⟦nope))": "column 'nope' not found",
    "SELECT *\nFROM u UNPIVOT ((v, w) FOR n IN ((i, x),\n  ⟦(x)))": "UNPIVOT of 1 columns into 2",
    "SELECT * FROM t NATURAL JOIN\n  LATERAL (⟦SELECT 1) q": "LATERAL cannot be joined with USING or NATURAL",
    "SELECT * FROM t RIGHT JOIN\n  LATERAL (⟦SELECT 1) q": "RIGHT JOIN does not support LATERAL",
    "SELECT v FROM t\nLATERAL VIEW ⟦explode(arr) q AS v, w": "'explode' makes 1 columns, 2 are named",
    "SELECT v FROM t\nLATERAL VIEW\n  ⟦explode(i) q AS v": "explode",
    "SELECT 1,\n  ⟦explode(arr) AS (a, b)\nFROM t": "'explode' makes 1 columns, 2 are named",
    "SELECT 1,\n  ⟦i AS (a, b)\nFROM t": "only a generator can have several aliases",
    "SELECT 1 +\n  ⟦explode(arr)\nFROM t": "generator 'explode' is only allowed in the select list",
    "SELECT\n  ⟦stack(0, i)\nFROM t": "'stack' makes 0 rows; it must be at least 1",
    "SELECT\n  ⟦stack(2, i, s)\nFROM t": "column 0 of 'stack' mixes int and string",
    "SELECT\n  ⟦stack(1)\nFROM t": "function 'stack' takes at least 2 arguments, not 1",
    "SELECT\n  explode(⟦explode(am))\nFROM t": "generator 'explode' is only allowed in the select list",
}
WINDOWS = {
    "SELECT i FROM t\nWHERE\n  ⟦rank() OVER (ORDER BY i) = 1": "a window function is only allowed in the select list",
    "SELECT max(i) FROM t\nHAVING\n  ⟦rank() OVER (ORDER BY max(i)) = 1": "a window function",
    "SELECT i FROM t\nQUALIFY\n  ⟦i > 1": "QUALIFY needs a window function",
    "SELECT i FROM t\nGROUP BY\n  ⟦rank() OVER (ORDER BY i)": "a window function",
    "SELECT i,\n  sum(⟦rank() OVER (ORDER BY i))\nFROM t": "a window function inside an aggregate",
    "SELECT\n  ⟦rank()\nFROM t": "window function 'rank' needs OVER",
    "SELECT\n  ⟦rank() OVER ()\nFROM t": "window function 'rank' needs ORDER BY in its window",
    "SELECT i,\n  ⟦median(i) OVER (ORDER BY i)\nFROM t": "Cannot specify ORDER BY or a window frame",
    "SELECT i,\n  ⟦sum(DISTINCT i) OVER ()\nFROM t": "DISTINCT is not allowed in 'sum' over a window",
    "SELECT\n  ⟦sum(i) OVER (ORDER BY i ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)\nFROM t": "the frame ends before it starts",
    "SELECT\n  ⟦sum(i) OVER (ORDER BY i, l RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)\nFROM t": "a RANGE by values needs exactly one sort key",
    "SELECT\n  ⟦sum(i) OVER (RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)\nFROM t": "a RANGE frame needs ORDER BY",
    "SELECT\n  ⟦sum(i) OVER (ORDER BY s RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)\nFROM t": "a RANGE of int around a string",
    "SELECT\n  ⟦sum(i) OVER (ORDER BY i ROWS BETWEEN l PRECEDING AND CURRENT ROW)\nFROM t": "the bound of a frame must be a constant",
    "SELECT\n  ⟦sum(i) OVER (ORDER BY i ROWS BETWEEN 1.5 PRECEDING AND CURRENT ROW)\nFROM t": "ROWS counts rows by an int",
    "SELECT\n  ⟦sum(i) OVER (ORDER BY i ROWS BETWEEN 'a' PRECEDING AND CURRENT ROW)\nFROM t": "the bound of a frame cannot be a string",
    "SELECT\n  ⟦sum(i) IGNORE NULLS OVER (ORDER BY i)\nFROM t": "'sum' does not take IGNORE NULLS",
    "SELECT\n  ⟦rank() FILTER (WHERE b) OVER (ORDER BY i)\nFROM t": "'rank' does not take FILTER",
    "SELECT\n  ⟦count() OVER ()\nFROM t": "count needs an argument",
    "SELECT\n  ⟦ntile(0) OVER (ORDER BY i)\nFROM t": "ntile",
    "SELECT\n  ⟦lag(i, i) OVER (ORDER BY i)\nFROM t": "lag",
}
PIPES = {
    "FROM t\n|> WHERE i > 1\n|> WHERE\n  ⟦max(i) > 1": "aggregates are not allowed in |> WHERE",
    "FROM t\n|> SELECT i\n|> EXTEND\n  ⟦max(i) AS x": "the aggregate 'max' is not allowed in |> EXTEND",
    "FROM t\n|> SET i = 1,\n  ⟦nope = 2": "column 'nope' of |> SET is not there",
    "FROM t\n|> DROP i,\n  ⟦nope": "column 'nope' not found",
    "FROM t\n|> DROP i,\n  ⟦i": "|> DROP names 'i' twice",
    "FROM t\n|> SELECT i\n|> LIMIT\n  ⟦-1": "LIMIT is -1",
    "FROM t\n|> SELECT i\n|> ORDER BY\n  ⟦nope": "column 'nope' not found",
    "FROM t\n|> SELECT i\n|> ORDER BY\n  ⟦max(i)": "aggregate and window functions are not allowed in |> ORDER BY",
    "FROM t\n|> ⟦AGGREGATE i": "|> AGGREGATE must contain an aggregate",
    "FROM t\n|> SELECT i\n|> UNION ALL\n  ⟦SELECT dt FROM t": "column 1 of UNION mixes int and date",
    "FROM t\n|> JOIN u\n  USING (⟦nope)": "column 'nope' not found",
}
SYNTAX = {
    "⟦": "the text contains no statement",
    "SELECT i\nFROM t\nGROUP ⟦i": "syntax error",
    "SELECT i;\n⟦SELECT 2": "found 2 statements",
    "SELECT i,\n  ⟦'open\nFROM t": "has no closing",
    "SELECT i\n⟦/* open\nFROM t": "has no closing",
    "FROM t\n|> ⟦FROB i": "is not a pipe operator",
    "SELECT\n  ⟦IDENTIFIER(i)\nFROM t": "IDENTIFIER(…) takes a constant text",
    "SELECT i,\n  ⟦128Y\nFROM t": "[INVALID_NUMERIC_LITERAL_RANGE] the number 128 is out of the range of TINYINT",
    "SELECT i -\n  ⟦32768S FROM t": "the number 32768 is out of the range of SMALLINT",
    "SELECT -\n  ⟦9223372036854775809L": "is out of the range of BIGINT",
    "SELECT ⟦1e999": "the number 1e999 is out of the range of DOUBLE",
    "SELECT ⟦3.5e38F": "is out of the range of FLOAT",
    "SELECT i FROM t\nWHERE i\n  ⟦! IN (1)": "[SYNTAX_DISCONTINUED.BANG_EQUALS_NOT] write NOT instead of !",
    "SELECT i IS\n  ⟦! NULL FROM t": "write NOT instead of !",
    "SELECT CAST(i AS\n  ⟦NOPE) FROM t": "[UNSUPPORTED_DATATYPE] syntax error",
    "SELECT nope\n  ⟦'1' FROM t": "[UNSUPPORTED_TYPED_LITERAL] syntax error",
    "⟦SELECT X'zz'": "[INVALID_TYPED_LITERAL] syntax error",
    "FROM t\n|> ORDER BY i\n  ⟦LIMIT 1": "[MULTIPLE_QUERY_RESULT_CLAUSES_WITH_PIPE_OPERATORS] LIMIT needs an operator",
    "FROM t\n|> ⟦AS": "Expecting a name behind AS",
    "FROM t\n|> LIMIT 1\n  ⟦SORT BY i": "[UNSUPPORTED_FEATURE.COMBINATION_QUERY_RESULT_CLAUSES]",
    "⟦SELECT " + "(" * 10_000 + "1" + ")" * 10_000: "nested too deeply",
}
FORBIDDEN = {
    "⟦DROP TABLE t": "DROP is not a query",
    "SELECT *\nFROM\n  ⟦parquet.`/etc/x`": "reads a path",
    "SELECT i,\n  ⟦reflect('a', 'b')\nFROM t": "reaches outside the query",
    "SELECT *\nFROM ⟦read_files('/x')": "table function 'read_files' is not allowed",
}
UNSTAGED = {
    "SELECT i,\n  ⟦to_avro(st)\nFROM t": "function 'to_avro' is not known to the planner",
    "SELECT i\nFROM ⟦t TABLESAMPLE (10 PERCENT)": "TABLESAMPLE",
    "WITH RECURSIVE ⟦r AS (SELECT 1 AS n)\nSELECT * FROM r": "recursive CTEs are not staged",
    "SELECT i FROM t\nUNION BY NAME\n⟦SELECT x FROM u": "UNION BY NAME is not SQL of Spark",
    "SELECT i FROM t\nLIMIT\n  ⟦length('ab')": "LIMIT of an expression whose value is not known yet",
    "SELECT v FROM t\nLATERAL VIEW\n  ⟦variant_explode(i) q AS v": "LATERAL ANONYMOUS is not staged",
    "SELECT i,\n  (SELECT max(x) FROM u WHERE u.i = ⟦t.l)\nFROM t GROUP BY i": "a subquery over 'l', which is not in GROUP BY",
    "SELECT *\nFROM t,\n  ⟦sql_keywords()": "table function 'sql_keywords' is not staged",
    "SELECT *\nFROM VALUES\n  ⟦((SELECT 1))": "a subquery in VALUES",
    "SELECT *\nFROM range(\n  ⟦length('a'))": "'range' of an expression whose value is not known yet",
    "SELECT s,\n  ⟦aes_encrypt(s, '0123456789abcdef', 'CBC', 'DEFAULT', '0123456789abcdef')\nFROM t": "cannot run on DuckDB: function 'aes_encrypt'",
}
# Mistakes in one call, which stands in the third line of a query.
CALLS = {
    "bit_and(d)": "expected a whole number, found double",
    "listagg(s, s)": "listagg needs a constant delimiter",
    "to_json(i)": "expected an array, a map or a struct, found int",
    "hour(b)": "expected a timestamp, found boolean",
    "bit_length(arr)": "found array<int>",
    "power(dt, i)": "expected a number, found date",
    "i.x": "which has no members",
    "i[0]": "[…] needs an array, a map or a struct, not int",
    "named_struct('a', 1, 'A', 2).a": "is ambiguous",
    "nvl2(i, l)": "function 'nvl2' takes 3 arguments, not 2",
    "collation(arr)": "collation: expected a string",
    "array_distinct(am)": "cannot be compared",
    "array_union(arr, array(dt))": "mixes",
    "arr['a']": "an index of type string in an array<int>",
    "named_struct('a')": "a name without a value",
    "named_struct(s, 1)": "a name is not a literal string",
    "filter(arr, e -> e + 1)": "the lambda must give a boolean, not int",
    "i & b": "a bit operator on int and boolean",
    "bit_count(d)": "bit_count",
    "~d": "expected a whole number, found double",
    "abs(dt)": "expected a number, found date",
    "array_join(am, ',')": "expected an array of strings",
    "array_sort(arr, (x, y) -> 'a')": "the lambda must give an int, not string",
    "sequence(b, b)": "expected whole numbers, dates or timestamps",
    "sequence(i, dt)": "expected a start and an end of one type",
    "sequence(dt, dt, 1)": "the step of a sequence of date is a int",
    "flatten(arr)": "expected an array of arrays, found array<int>",
    "aggregate(arr, 0, (a, e) -> 'x')": "the lambda must give int as the start does, not string",
    "bitmap_count(i)": "expected a binary, found int",
    "inline(arr)": "expected an array of structs, found array<int>",
    "extract(YEAR FROM INTERVAL '1' DAY)": "there is no field YEAR in an interval day",
    "map(1)": "a key without a value",
    "map_from_entries(arr)": "expected an array of pairs, found array<int>",
    "mask(s, 'XY')": "mask takes single characters",
    "date_trunc('day', b)": "expected a timestamp, found boolean",
    "last_day(b)": "expected a date, found boolean",
    "unix_timestamp(i)": "expected a timestamp, found int",
    "timestamp_seconds(dt)": "expected a number, found date",
    "INTERVAL '999999999999' DAY": "is out of range",
    "INTERVAL '1' DAY - dt": "cannot subtract date from interval day",
    "INTERVAL '1' DAY * INTERVAL '1' DAY": "multiply of interval day and interval day",
    "mode() WITHIN GROUP (ORDER BY i, l)": "mode takes one sort key, not 2",
    "max(i) WITHIN GROUP (ORDER BY i)": "'max' does not take WITHIN GROUP",
    "date_add(dt)": "function 'date_add' takes 2 arguments, or 3 with a unit",
    "date_add(dt, INTERVAL '1' DAY)": "'date_add' takes a number of days",
    "first(i IGNORE NULLS) OVER (ORDER BY i)": "IGNORE NULLS must follow the parentheses",
    "first(i, i) OVER (ORDER BY i)": "the second argument of 'first' must be true or false",
    "sum(i) FILTER (WHERE i) OVER ()": "FILTER needs a boolean, found int",
    "sum(i) OVER (ORDER BY i GROUPS CURRENT ROW)": "GROUPS frames are not Spark SQL",
    "sum(i) OVER (ORDER BY i ROWS CURRENT ROW EXCLUDE TIES)": "EXCLUDE in a frame is not Spark SQL",
    "sum(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW)": "the frame ends",
    "sum(i) OVER (ORDER BY dt RANGE BETWEEN 1 PRECEDING AND INTERVAL '1' DAY FOLLOWING)": "the bounds of a frame must have the same type",
    "lag(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)": "'lag' takes no frame",
    "rank() OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)": "'rank' has a fixed frame",
    "ntile(s) OVER (ORDER BY i)": "the",
    "ntile(1, 2) OVER (ORDER BY i)": "window function 'ntile'",
    "window(ts)": "function 'window'",
    "window(ts, '0 days')": "must be positive",
    "window(ts, '1 hour', '2 hours')": "must not be longer than the window",
    "window(ts, '2 hours', '1 hour', '3 hours')": "must be shorter than its slide",
    "transform(x -> x, arr)": "takes no lambda as argument 1",
    "decode(i, 'utf-8')": "expected a binary, found int",
    "current_date(1)": "takes 0 arguments, not 1",
    "i & d": "a bit operator on int and double",
    "to_number('1', 'abc')": "the number format 'abc' has no digit",
    "array_repeat(i, dt)": "expected an int, found date",
    "trunc(b, 'year')": "found boolean",
    "to_timestamp(arr)": "expected a text or a moment, found array<int>",
    "nvl()": "takes 2 arguments, not 0",
    "window_time(ts, 1)": "function 'window_time'",
    "CAST('x' AS BINARY) LIKE arr": "expected a string, found array<int>",
    "format_number(i, arr)": "format_number",
    "convert_timezone('UTC')": "convert_timezone",
}
SPARK_REFUSES = {
    "SELECT i,\n  ⟦+ b\nFROM t": "positive: expected a number, found boolean",
    "SELECT\n  ⟦- true": "negate: expected a number, found boolean",
    "SELECT\n  ⟦round(d, i)\nFROM t": "round: the number of digits must be a constant",
    "SELECT\n  ⟦ceil(c, i)\nFROM t": "ceil: the number of digits must be a constant",
    "SELECT\n  ⟦floor(INTERVAL '1' DAY)": "floor: expected a number, found interval day",
    "SELECT\n  ⟦percentile_approx(i, 0.5, 0)\nFROM t": "the accuracy of percentile_approx is 0",
    "SELECT\n  ⟦percentile_approx(i, 0.5, 1.5)\nFROM t": "must be a whole number, not decimal(2,1)",
    "SELECT\n  ⟦percentile_approx(d, d)\nFROM t": "the percentage of percentile_approx must be a constant",
    "SELECT\n  ⟦percentile_approx(d, NULL)\nFROM t": "the percentage of percentile_approx is NULL",
    "SELECT\n  ⟦percentile_approx(b, 0.5)\nFROM t": "percentile_approx of boolean",
    "SELECT\n  ⟦percentile(d, 0.5, d)\nFROM t": "must be a whole number, not double",
    "SELECT\n  ⟦approx_count_distinct(i, 1)\nFROM t": "the deviation of approx_count_distinct",
    "SELECT\n  ⟦approx_count_distinct(i, 0.5)\nFROM t": "the deviation of approx_count_distinct",
    "SELECT\n  ⟦approx_count_distinct(i, CAST(NULL AS DOUBLE))\nFROM t": "the deviation of approx",
    "SELECT\n  ⟦max_by(i, l, i)\nFROM t": "the number of values must be a constant",
    "SELECT\n  ⟦collect_set(m)\nFROM t": "a set of map<string,int>",
    "SELECT\n  ⟦mode(i, b)\nFROM t": "the second argument of 'mode' must be true or false",
    "SELECT\n  ⟦count_if()\nFROM t": "aggregate 'count_if' takes 1 argument, not 0",
    "SELECT\n  ⟦listagg(bin, ',')\nFROM t": "the delimiter of a listagg of binaries must be a binary",
    "SELECT count(*) FILTER (WHERE\n  ⟦NULL) FROM t": "FILTER needs a boolean, found void",
    "SELECT\n  ⟦transform_keys(m, (k, v) -> map(k, v))\nFROM t": "cannot be compared",
    "SELECT\n  ⟦hash(i, m)\nFROM t": "hash: map<string,int> has no hash",
    "SELECT\n  ⟦transform(arr)\nFROM t": "function 'transform' takes 2 arguments, not 1",
    "SELECT\n  ⟦element_at(arr, NULL)\nFROM t": "element_at: expected an int, found void",
    "SELECT\n  ⟦nvl(i)\nFROM t": "function 'nvl' takes 2 arguments, not 1",
    "SELECT\n  ⟦if(b, i)\nFROM t": "function 'if' takes 3 arguments, not 2",
    "SELECT\n  ⟦CASE WHEN NULL THEN 1 END": "case: expected a boolean, found void",
    "SELECT\n  ⟦date(i)\nFROM t": "cannot cast int to date; use date_from_unix_date(…)",
    "SELECT\n  ⟦to_date(arr)\nFROM t": "to_date: expected a text or a moment, found array<int>",
    "SELECT\n  ⟦to_timestamp(i, 'y')\nFROM t": "to_timestamp reads a text by a pattern, not an int",
    "SELECT\n  ⟦unix_timestamp(s, i)\nFROM t": "unix_timestamp: expected a string, found int",
    "SELECT\n  ⟦extract(YEAR FROM INTERVAL '1' MONTH)": "there is no field YEAR in an interval month",
    "SELECT\n  ⟦s = INTERVAL '1' DAY\nFROM t": "cannot compare string with interval day",
    "SELECT\n  ⟦mask(i)\nFROM t": "mask: expected a string, found int",
    "SELECT\n  ⟦mask(s, s)\nFROM t": "mask: a character of mask must be a constant",
    "SELECT\n  ⟦soundex(dt)\nFROM t": "soundex: expected a string, found date",
    "SELECT\n  ⟦to_binary(s, 'a')\nFROM t": "the format of to_binary is 'a'",
    "SELECT\n  ⟦to_char(c, 'a')\nFROM t": "the number format 'a' has no digit",
    "SELECT\n  ⟦format_number(s, 2)\nFROM t": "format_number: expected a number, found string",
    "SELECT\n  ⟦format_number(i, l)\nFROM t": "expected an int or a string as the format",
    "SELECT\n  ⟦overlay(s, bin, 1)\nFROM t": "expected two strings or two binaries",
    "SELECT\n  ⟦bitmap_count(NULL)": "bitmap_count: expected a binary, found void",
    "SELECT\n  ⟦schema_of_json(s)\nFROM t": "the JSON of schema_of_json must be a constant",
    "SELECT i\nFROM t\nWHERE ⟦NULL": "WHERE needs a boolean, found void",
    "SELECT DISTINCT i AS j\nFROM t\nORDER BY ⟦i": "ORDER BY of a DISTINCT query must use its select items",
    "SELECT DISTINCT i AS i\nFROM t\nORDER BY ⟦t.i": "ORDER BY of a DISTINCT query must use its select items",
    "SELECT DISTINCT i + 1\nFROM t\nORDER BY ⟦i + 1": "ORDER BY of a DISTINCT query must use its select items",
    "SELECT DISTINCT i, sum(l) AS x FROM t GROUP BY i\nORDER BY i,\n  ⟦sum(l)": "ORDER BY of a DISTINCT query must use its select items",
    "SELECT *\nFROM (SELECT i, l AS i FROM t) q\nORDER BY ⟦i": "column 'i' is ambiguous; it could be q.i, q.i",
    "SELECT - i AS z, l AS z\nFROM t\nORDER BY ⟦z": "column 'z' is ambiguous: several select items have that name",
    "SELECT i\nFROM (SELECT i, i FROM t) q (a, a)\nWHERE ⟦a = 1": "column 'a' is ambiguous",
    "SELECT i FROM t\nWHERE i IN (SELECT\n  ⟦max(t.i) FROM u)": "'max' cannot aggregate columns of the outer query",
    "SELECT (SELECT x FROM u\n  ORDER BY x,\n    ⟦u.i + t.i LIMIT 1) FROM t": "ORDER BY of a nested query cannot read columns of the outer query",
}
MORE = {
    "SELECT\n  ⟦percentile_cont(2) WITHIN GROUP (ORDER BY i)\nFROM t": "the percentage of a percentile is 2",
    "SELECT\n  ⟦percentile_cont(0.5) WITHIN GROUP (ORDER BY i, l)\nFROM t": "percentile_cont takes one sort key, not 2",
    "SELECT sum(i) FILTER (WHERE\n  ⟦rank() OVER (ORDER BY i) > 1) OVER () FROM t": "a window function",
    "SELECT\n  ⟦sum(i) OVER a FROM t\nWINDOW a AS b, b AS c, c AS d, d AS (ORDER BY i)": "a named window refers to another reference",
    "FROM t\n|> ⟦AGGREGATE": "|> AGGREGATE needs an aggregate",
    "SELECT i FROM ⟦nope TABLESAMPLE (10 PERCENT)": "table 'nope' is not in the catalog",
    "SELECT i,\n  ⟦sum(l) OVER v\nFROM t WINDOW v AS (w ORDER BY i), w AS (PARTITION BY i)": "window 'w' cannot be extended",
    "SELECT *\nFROM u\nPIVOT (max(i) FOR s IN ('a')) AS ⟦q(a, b)": "alias 'q' names 2 of",
    "SELECT *\nFROM u UNPIVOT (v FOR n IN (i,\n  ⟦x + 1))": "PIVOT and UNPIVOT take columns",
    "SELECT v FROM t\nLATERAL VIEW\n  ⟦explode(array(max(i))) q AS v": "aggregate and window functions are not allowed in FROM",
    "SELECT\n  window(ts, '1 hour'), ⟦window(ts, '2 hours')\nFROM t": "a SELECT can have only one time window",
}
# A hint is a comment to the parser, which keeps no places of these: the SELECT that it is of.
HINTS = {
    "⟦SELECT /*+ COALESCE(i) */ i\nFROM t": "hint COALESCE takes one number of tasks",
    "SELECT i FROM t WHERE i IN (\n  ⟦SELECT /*+ REPARTITION(0) */ i FROM u)": "asks for 0 tasks; use 1 to 65,536",
    "WITH a AS (\n  ⟦SELECT /*+ REPARTITION(2, i + 1) */ i FROM u)\nSELECT * FROM a": "takes a number of tasks and columns, not i + 1",
    "SELECT i FROM t UNION ALL\n⟦SELECT /*+ REBALANCE(s) */ i FROM t": "hint REBALANCE names s, which is not selected",
}
REFUSED = [
    (kind, marked, text)
    for kind, cases in (
        (
            AnalysisError,
            NAMES
            | PROJECT_FUNCTIONS
            | GROUPS
            | TYPES
            | CLAUSES
            | WINDOWS
            | PIPES
            | SPARK_REFUSES
            | MORE
            | HINTS,
        ),
        (ParseError, SYNTAX),
        (ForbiddenSqlError, FORBIDDEN),
    )
    for marked, text in cases.items()
] + [
    (AnalysisError, f"SELECT i,\n  s,\n  {MARK}{call}\nFROM t", text)
    for call, text in CALLS.items()
]


PLANNER = Path(planner.__file__).parent
# Where names, clauses and types are judged; functions of the tables judge their own arguments.
JUDGES = (
    "analysis/queries/*.py",
    "analysis/scalars/*.py",
    "analysis/scope.py",
    "plan/coercion.py",
    "syntax/parse.py",
    "syntax/spark_syntax.py",
)
# Refusals by the start of their text that no query reaches, and why.
UNREACHED = {
    "generators cannot be nested": "the handler of a nested generator refuses it first",
    "generators are not allowed in GROUP BY": "the handler of a nested generator refuses it first",
    "window functions are not allowed in GROUP BY": "the scope of GROUP BY refuses window functions first",
    "window functions are not allowed in PIVOT": "the scope of PIVOT refuses window functions first",
    "column '{name.name}' of |> DROP": "only for a name of an outer query",
    "'{text}' is not a decimal": "the tokenizer and the command line give digits",
    "expected a date or timestamp": "functions of times have rules of their own",
    "WITHIN GROUP is only allowed": "listagg is the only function that comes here",
    "IDENTIFIER('{text}') is not a name": "sqlglot takes nearly any text for a name",
    "syntax error: {error}": "Spark's lexical rules find what has no end first",
    "the text cannot be read as a query": "tests/security/test_select_only.py has one",
}
_REFUSALS = (
    "AnalysisError",
    "FunctionCallError",
    "ParseError",
    "UnknownColumnError",
    "UnknownTableError",
)


def lines_of(error: BaseException | None) -> Iterator[tuple[str, int]]:
    """The lines that an error, and what it came from, went through."""
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__):
            yield frame.filename, frame.lineno or 0
        error = error.__cause__


def refusals() -> Iterator[tuple[str, range, str]]:
    """File, lines and text of each `raise AnalysisError(…)`, or of a kind of it, of the judges."""
    for path in (p for pattern in JUDGES for p in PLANNER.glob(pattern)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            call = node.exc if isinstance(node, ast.Raise) else None
            name = getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            if isinstance(call, ast.Call) and name in _REFUSALS:
                lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                yield str(path), lines, ast.unparse(call)


def check(error: SqlError, marked: str, text: str) -> None:
    before = marked.partition(MARK)[0]
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert text in error.message
    assert (error.line, error.column) == place, str(error)
    assert str(error).endswith(f" (line {place[0]}, column {place[1]})")


@pytest.mark.parametrize(("kind", "marked", "text"), REFUSED, ids=[m[:60] for _, m, _ in REFUSED])
def test_an_error_is_placed_at_what_is_wrong(kind: type[SqlError], marked: str, text: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan_query(marked.replace(MARK, ""), TABLES)
    assert isinstance(caught.value, kind)
    check(caught.value, marked, text)


@pytest.mark.parametrize(("marked", "text"), UNSTAGED.items(), ids=[m[:60] for m in UNSTAGED])
def test_what_duckdb_alone_cannot_run_is_placed_too(marked: str, text: str) -> None:
    with pytest.raises(UnsupportedSqlError) as caught:
        plan_query(marked.replace(MARK, ""), TABLES, PlannerOptions(engine="duckdb"))
    check(caught.value, marked, text)


def test_every_refusal_has_a_case_or_a_reason() -> None:
    hit: set[tuple[str, int]] = set()
    for _, marked, _ in REFUSED:
        with pytest.raises(SqlError) as caught:
            plan_query(marked.replace(MARK, ""), TABLES)
        hit.update(lines_of(caught.value))
    missing = [
        f"{path}:{lines.start}: {text}"
        for path, lines, text in refusals()
        if not any((path, line) in hit for line in lines)
        and not any(known in text for known in UNREACHED)
    ]
    assert not missing, "add a query that is refused there to this file:\n" + "\n".join(missing)


ACCEPTED = (
    "SELECT DISTINCT i, l FROM t ORDER BY i + l",
    "SELECT DISTINCT i AS j FROM t ORDER BY j + 1",
    "SELECT i FROM t ORDER BY 1.5",
    "SELECT i FROM t ORDER BY 3000000000",
    "SELECT i FROM t GROUP BY 1.5, i",
    "SELECT i FROM t DISTRIBUTE BY m",
    "SELECT bool_or(s), every(s), count_if(s) FROM t",
    "SELECT bool_or(s) OVER (), count_if(s) OVER () FROM t",
    "SELECT CAST(ts AS INT), CAST(i AS TIMESTAMP), CAST(b AS DECIMAL(3,1)), CAST(m AS STRING) FROM t",
    "SELECT CAST(NULL AS DATE), CAST(bin AS STRING), CAST(INTERVAL '1' DAY AS INT) FROM t",
    "SELECT max_by(m, i), collect_list(m) FROM t",
    "SELECT m FROM t GROUP BY m",
    "SELECT :n FROM t",
    "SELECT to_date(i), to_date(i, 'yyyyMMdd'), try_to_date(b), to_timestamp(b), to_timestamp_ntz(i) FROM t",
    "SELECT sum(ts), avg(ts), bit_and(NULL), max_by(i, l, 2), approx_count_distinct(i, 0.05) FROM t",
    "SELECT i FROM (SELECT i, i FROM t) q WHERE i = 1 ORDER BY i",
    "SELECT * FROM (SELECT i, i FROM t) q ORDER BY i",
    "SELECT s, sum(i) AS s FROM t GROUP BY s HAVING s > 'a' ORDER BY s",
    "SELECT DISTINCT i, i FROM t ORDER BY t.i",
    "SELECT DISTINCT i AS j, sum(l) AS x FROM t GROUP BY i ORDER BY x, j + 1",
    "SELECT (SELECT x + t.i AS z FROM u ORDER BY z LIMIT 1) FROM t",
    "SELECT i FROM t LIMIT +1",
    "SELECT if(NULL, 1, 2), + s, nvl(i, 1), sequence(1, '3') FROM t",
)


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_accepts_is_not_refused(sql: str) -> None:
    plan_query(sql, TABLES, parameters=(ParameterSpec("n", INT),))


def test_the_place_of_a_text_over_several_lines_is_where_it_begins() -> None:
    with pytest.raises(AnalysisError) as caught:
        plan_query("SELECT i FROM t\nWHERE\n  'a\nb\nc'", TABLES)
    assert (caught.value.line, caught.value.column) == (3, 3)
