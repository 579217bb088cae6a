-- initcap
SELECT id, initcap(name) AS a, initcap(category) AS b FROM products
