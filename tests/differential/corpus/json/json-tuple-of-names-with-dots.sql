-- json_tuple of names that are no words, one of them twice
SELECT id, p, q, r FROM jt LATERAL VIEW json_tuple(odd, 'a.b', 'a', 'a') t AS p, q, r
