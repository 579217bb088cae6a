-- sequences of dates by days, weeks and months, forwards and back
SELECT id, sequence(signed_up, DATE '2024-02-29') AS a, sequence(signed_up, DATE '2022-01-31', INTERVAL -2 MONTH) AS b,
  sequence(signed_up, signed_up + INTERVAL 60 DAYS, INTERVAL 1 WEEK) AS c,
  transform(sequence(signed_up, add_months(signed_up, 5), INTERVAL 1 MONTH), x -> day(x)) AS d
FROM customers
