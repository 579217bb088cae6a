-- a funnel by left joins of the next event of a kind
SELECT v.page, count(DISTINCT v.person) AS viewers, count(DISTINCT b.person) AS buyers
FROM events v LEFT JOIN events b
  ON b.person = v.person AND b.kind = 'buy' AND b.moment BETWEEN v.moment AND v.moment + INTERVAL 2 HOURS
WHERE v.kind = 'view' GROUP BY v.page
