-- USING after USING: the last keys come first
SELECT * FROM (SELECT a, b, v FROM t) x JOIN (SELECT a, id FROM u) y USING (a) JOIN (SELECT b, c FROM u) z USING (b)
