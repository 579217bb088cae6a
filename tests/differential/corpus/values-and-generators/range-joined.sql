-- range fills missing keys
SELECT r.id, count(x.id) AS n FROM range(-1, 11) r LEFT JOIN x ON x.k = r.id GROUP BY r.id
