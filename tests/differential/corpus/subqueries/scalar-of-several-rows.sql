-- a scalar subquery of several rows raises an error
SELECT id, (SELECT v FROM y) AS v FROM x
