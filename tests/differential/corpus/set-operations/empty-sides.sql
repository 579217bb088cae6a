-- set operations with an empty side
(SELECT a FROM t EXCEPT SELECT a FROM none) UNION ALL (SELECT a FROM none INTERSECT SELECT a FROM t)
