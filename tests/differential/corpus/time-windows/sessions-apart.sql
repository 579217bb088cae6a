-- sessions of single rows, which only GROUP BY merges
SELECT session_window.start, count(*) AS n FROM events GROUP BY session_window(moment, '5 minutes').start
