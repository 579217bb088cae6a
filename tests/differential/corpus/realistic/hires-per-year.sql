-- hires of every year, with years without any
SELECT r.id AS year, count(e.id) AS hires, sum(count(e.id)) OVER (ORDER BY r.id) AS staff
FROM range(2018, 2026) r LEFT JOIN employees e ON year(e.hired) = r.id GROUP BY r.id
