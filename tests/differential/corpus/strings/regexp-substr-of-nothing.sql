-- A match of nothing is no part of a text
SELECT a, regexp_substr(a, 'z*') AS z, regexp_substr(a, 'b+') AS b FROM VALUES ('abc'), ('zz'), (''), (NULL) AS t(a)
