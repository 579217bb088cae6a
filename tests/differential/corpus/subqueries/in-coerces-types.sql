-- IN between an int and a decimal subquery
SELECT id FROM x WHERE k IN (SELECT kc FROM y)
