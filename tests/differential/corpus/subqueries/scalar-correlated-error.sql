-- a correlated scalar subquery of several rows raises an error
SELECT id, (SELECT y.id FROM y WHERE y.kb = x.kb) AS one FROM x
