-- the last event before each order
SELECT o.id, e.id AS event_id FROM orders o LEFT JOIN LATERAL (
  SELECT e.id FROM events e WHERE e.person = o.customer AND e.moment <= o.placed ORDER BY e.moment DESC, e.id DESC LIMIT 1) e
