-- windows at the ends of the calendar as JSON
SELECT to_json(window(tn, '7 days', '3 days', '-1 hour')) AS a FROM e WHERE tn > '1900-01-01' AND tn < '2100-01-01'
UNION ALL SELECT to_json(window(ts, '45 minutes', '20 minutes', '7 minutes')) FROM e
