-- range(n)
SELECT id FROM range(5)
