-- arrays and structs in branches of CASE
SELECT id, CASE WHEN b THEN ai WHEN k > 1 THEN array(k) END AS a, coalesce(st, su) AS c FROM n
