-- a filter on one key filters the joined keys
SELECT a.id, b.id, c.id FROM x a JOIN y b ON a.k = b.k JOIN u c ON b.k = c.id WHERE a.k = 2
