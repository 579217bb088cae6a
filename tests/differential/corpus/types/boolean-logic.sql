-- three-valued logic
SELECT id, b AND b2 AS a, b OR b2 AS c, NOT b AS d, b <=> b2 AS f, b IS NOT TRUE AS g, b = b2 AS h FROM e
