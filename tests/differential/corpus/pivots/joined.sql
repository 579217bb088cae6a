-- PIVOT of a join, filtered afterwards
SELECT * FROM (SELECT x.ks, y.kb, y.v FROM x JOIN y ON x.k = y.k) PIVOT (sum(v) AS s FOR kb IN (true AS yes, false AS no)) WHERE yes > 0 OR no IS NULL
