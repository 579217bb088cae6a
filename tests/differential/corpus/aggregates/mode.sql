-- the mode with one most frequent value
SELECT mode(q) AS m FROM VALUES (1), (2), (2), (NULL), (NULL), (NULL) AS v(q)
