-- a left join to a grouped side of which no column is read
SELECT x.id FROM x LEFT JOIN (SELECT k, count(*) AS n FROM y GROUP BY k) q ON x.k = q.k
