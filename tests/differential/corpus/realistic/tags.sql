-- products by tag from an array
SELECT tag, count(*) AS n, max(price) AS dearest, sort_array(collect_set(category)) AS categories
FROM products LATERAL VIEW explode(array_distinct(tags)) q AS tag GROUP BY tag
