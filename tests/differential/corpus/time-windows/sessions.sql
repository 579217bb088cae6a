-- sessions: rows of one person with gaps of less than half an hour
SELECT person, session_window, count(*) AS n, count(DISTINCT page) AS pages, sum(ms) AS ms
FROM events GROUP BY person, session_window(moment, '30 minutes')
