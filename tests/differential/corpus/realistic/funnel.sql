-- a funnel: how many viewed, put in the cart and bought, in this order
WITH steps AS (
  SELECT person,
    min(CASE WHEN kind = 'view' THEN moment END) AS viewed,
    min(CASE WHEN kind = 'cart' THEN moment END) AS carted,
    min(CASE WHEN kind = 'buy' THEN moment END) AS bought
  FROM events WHERE person IS NOT NULL GROUP BY person
)
SELECT count(viewed) AS views,
  count(CASE WHEN carted > viewed THEN 1 END) AS carts,
  count(CASE WHEN carted > viewed AND bought > carted THEN 1 END) AS buys
FROM steps
