-- A struct that is written out before IN is a row of its members
SELECT id, struct(k, ks) IN (SELECT k, ks FROM y) AS a, ((k, ks)) NOT IN (SELECT k, ks FROM y WHERE k IS NOT NULL AND ks IS NOT NULL) AS b FROM x
