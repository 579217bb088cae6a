-- the common type of two decimals
SELECT w FROM x UNION SELECT c FROM t UNION SELECT kc FROM y
