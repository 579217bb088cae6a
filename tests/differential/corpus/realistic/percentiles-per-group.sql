-- percentiles of latency for each page
SELECT page, count(ms) AS n, percentile(ms, 0.5) AS p50, percentile(ms, 0.95) AS p95, max(ms) AS worst FROM events GROUP BY page
