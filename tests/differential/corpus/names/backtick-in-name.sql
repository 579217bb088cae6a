-- a backtick within a name
SELECT id AS `a``b` FROM (SELECT 1 AS id) WHERE id = 1
