-- IN is looser than a comparison: (b = b) IN (…)
SELECT id, b = b IN (true, false) AS a, b = b NOT IN (true) AS c, id < h IS DISTINCT FROM true AS d FROM g WHERE b <=> b IN (true)
