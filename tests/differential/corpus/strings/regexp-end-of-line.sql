-- The end of a pattern does not match between a return and a line feed
SELECT hex(a) AS a, a RLIKE 'x\\s$' AS b, a RLIKE 'x$' AS c, a RLIKE '$' AS d, a RLIKE '^x\\s*$' AS e, a RLIKE '\\r$' AS f, a RLIKE '\\n$' AS g,
  a RLIKE '[^a]{2}$' AS h, a RLIKE '^$' AS i
FROM VALUES ('x\r\n'), ('x\r'), ('x\n'), ('x'), ('x\r\n\n'), ('x\n\r\n'), ('\r\n'), ('\n'), (''), (NULL), ('x\r\r\n'), ('x \r\n'), ('x\n\r') AS t(a)
