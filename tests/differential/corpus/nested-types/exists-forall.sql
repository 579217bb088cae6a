-- exists and forall with NULL members
SELECT id, exists(ai, x -> x > 2) AS a, forall(ai, x -> x IS NOT NULL) AS b FROM n
