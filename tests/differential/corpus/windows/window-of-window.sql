-- a window over a window of a derived table
SELECT id, max(r) OVER (PARTITION BY kb) AS m FROM (SELECT id, kb, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM x)
