-- categories by revenue with their share and running share
WITH revenue AS (
  SELECT coalesce(p.category, 'none') AS category, sum(l.quantity * l.price) AS amount
  FROM lines l JOIN products p ON l.product = p.id GROUP BY coalesce(p.category, 'none')
)
SELECT category, amount, round(100 * amount / sum(amount) OVER (), 2) AS share,
  round(100 * sum(amount) OVER (ORDER BY amount DESC, category ROWS UNBOUNDED PRECEDING) / sum(amount) OVER (), 2) AS running
FROM revenue ORDER BY amount DESC, category
