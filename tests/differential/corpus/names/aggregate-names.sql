-- the names of aggregates without alias
SELECT k, count(*), count(DISTINCT ks), sum(v + 1), avg(w) FILTER (WHERE kb), max(s) FROM x GROUP BY k
