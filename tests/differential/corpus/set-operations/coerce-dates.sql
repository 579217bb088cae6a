-- a date and a timestamp become a timestamp
SELECT day AS d FROM t UNION SELECT TIMESTAMP'1970-01-01 00:00:00'
