-- the common type of CASE branches
SELECT id, CASE WHEN b THEN ti WHEN b2 THEN l ELSE 0 END AS a, CASE WHEN b THEN d52 ELSE d104 END AS c, if(b, k, d152) AS d FROM e
