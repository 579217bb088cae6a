-- UNPIVOT into two columns
SELECT * FROM wide UNPIVOT ((v, n) FOR q IN ((q1, n1) AS one, (q2, n2) AS two))
