-- adjacent literals are one text
SELECT 'a' 'b', R'c\n' 'd\n' AS raw, b || 'x' "y" AS z FROM t WHERE b LIKE '%' 'x'
