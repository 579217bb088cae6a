-- VALUES as a lookup table of a left join
SELECT x.id, q.label FROM x LEFT JOIN VALUES (1, 'one'), (2, 'two'), (NULL, 'none') AS q(k, label) ON x.k = q.k
