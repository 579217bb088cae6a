-- extremes of text, dates, times and numbers
SELECT y.kb, min(g.s) AS a, max(g.s) AS b, min(g.dt) AS c, max(g.ts) AS d, min(g.tn) AS e, max(g.l) AS f, min(g.d384) AS h FROM g JOIN y ON g.h = y.k GROUP BY y.kb
