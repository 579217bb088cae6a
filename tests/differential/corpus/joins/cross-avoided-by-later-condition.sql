-- three tables by commas whose conditions join them in another order
SELECT a.id, b.id, c.id FROM x a, u c, y b WHERE a.k = b.k AND b.v = c.id
