-- a name that two select items have means the column of FROM
SELECT k, - k AS k, id FROM e ORDER BY k DESC, id LIMIT 9
