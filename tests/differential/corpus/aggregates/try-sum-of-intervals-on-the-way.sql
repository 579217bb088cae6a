-- A sum of days that leaves its type on the way is none
-- on: some
SELECT try_sum(a) AS s FROM VALUES (INTERVAL '106751991' DAY), (INTERVAL '10' DAY), (INTERVAL '-10' DAY) AS t(a)
