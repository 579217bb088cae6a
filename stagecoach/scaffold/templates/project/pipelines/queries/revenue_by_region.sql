-- description: Orders and revenue of each day and region
-- checks:
--   - not_null: [day, region]
--   - unique: [day, region]
-- # When it runs in Dagster: minute hour day month weekday.
-- # schedule: {cron: "0 6 * * *", timezone: UTC}
SELECT
  o.day,
  s.region,
  count(*) AS orders,
  sum(o.amount) AS revenue
FROM orders AS o
JOIN shops AS s ON o.shop_id = s.shop_id
GROUP BY o.day, s.region
ORDER BY o.day, s.region
