-- a union of timestamps with and without time zone
SELECT ts AS t FROM e UNION SELECT tn FROM e
