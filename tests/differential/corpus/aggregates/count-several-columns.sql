-- COUNT of several columns counts rows without a NULL in them
SELECT h, count(i, s, dt) AS n, count(DISTINCT b, gc) AS pairs FROM g GROUP BY h
