-- INTERSECT ALL keeps the smaller number of duplicates
SELECT a FROM t INTERSECT ALL SELECT a FROM u
