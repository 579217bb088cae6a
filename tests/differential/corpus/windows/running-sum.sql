-- a running sum with peers: RANGE is the default frame
SELECT id, sum(v) OVER (PARTITION BY kb ORDER BY k) AS s FROM x
