-- a natural join without common names is a cross join
SELECT * FROM (SELECT id AS i FROM x WHERE v > 3) NATURAL JOIN (SELECT id AS j FROM u)
