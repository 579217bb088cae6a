-- to_date and to_timestamp with a pattern
SELECT id, to_date('29.02.2024', 'dd.MM.yyyy') AS a, try_to_timestamp(s, 'yyyy-MM-dd') AS b FROM e
