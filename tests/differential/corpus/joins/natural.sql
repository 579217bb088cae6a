-- a natural join on all common names
SELECT * FROM (SELECT k, kb, v FROM x) NATURAL JOIN (SELECT kb, k, w FROM y)
