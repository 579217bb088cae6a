-- lag and lead with offsets and defaults
SELECT id, lag(v) OVER w AS a, lead(v, 2) OVER w AS b, lag(s, 1, 'none') OVER w AS c, lead(v, -1) OVER w AS d FROM x WINDOW w AS (PARTITION BY kb ORDER BY id)
