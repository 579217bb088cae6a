-- both sides have the same column names
SELECT * FROM t JOIN u ON t.id = u.id
