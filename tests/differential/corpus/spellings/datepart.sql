-- datepart is extract
SELECT id, datepart('YEAR', kt) AS y, datepart('month', kt) AS m, datepart('dow', kt) AS d FROM x
