-- bool_and, bit_or and count_if as windows
SELECT id, bool_and(kb) OVER (PARTITION BY k) AS a, bit_or(v) OVER (ORDER BY id) AS b, count_if(v > 0) OVER (PARTITION BY kb) AS c FROM x
