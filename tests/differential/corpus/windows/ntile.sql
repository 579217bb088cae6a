-- ntile with more buckets than rows, and fewer
SELECT id, ntile(4) OVER (ORDER BY id) AS a, ntile(100) OVER (ORDER BY id DESC) AS b FROM x
