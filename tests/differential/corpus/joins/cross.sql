-- a cross join
SELECT x.id, u.id FROM x CROSS JOIN u
