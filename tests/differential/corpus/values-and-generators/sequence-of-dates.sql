-- explode of a sequence of dates
SELECT explode(sequence(DATE'2024-02-27', DATE'2024-03-02', INTERVAL 1 DAY)) AS day
