-- FILTER that is never true
SELECT count(*) FILTER (WHERE never > 0) AS n, sum(ti) FILTER (WHERE false) AS s FROM g
