-- LEFT JOIN LATERAL of a generator on a condition
SELECT p.id, t.tag, u.f, u.g FROM products AS p
LEFT JOIN LATERAL explode(p.tags) AS t(tag) ON t.tag < p.category OR p.id > 5
LEFT JOIN n ON n.id = p.id
LEFT JOIN LATERAL inline(n.ast) AS u(f, g) ON u.f > 0 OR u.g IS NULL
