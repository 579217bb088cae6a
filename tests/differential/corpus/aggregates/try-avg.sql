-- try_avg of decimals whose sum cannot overflow, and of those whose sum may
-- on: some
SELECT h, try_avg(d52) AS b, try_avg(d384) AS c FROM g GROUP BY h
