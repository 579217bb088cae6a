-- several windows with one partitioning and several orders
SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id) AS a, rank() OVER (PARTITION BY k ORDER BY v) AS b, count(*) OVER (PARTITION BY k) AS c FROM x
