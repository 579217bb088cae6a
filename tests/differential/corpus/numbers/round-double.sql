-- round of doubles runs on Spark: DuckDB rounds otherwise
-- on: some
SELECT id, round(d, 2) AS a, round(f) AS b FROM e WHERE abs(d) < 1e9
