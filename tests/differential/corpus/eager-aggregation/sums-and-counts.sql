-- sums and counts of one side of a join whose keys repeat on both
SELECT y.s, sum(x.v) AS sv, count(*) AS n, count(x.w) AS nw, sum(x.w) AS sw, sum(x.kl) AS sl FROM x JOIN y ON x.k = y.k GROUP BY y.s
