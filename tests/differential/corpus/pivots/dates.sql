-- PIVOT on dates
SELECT * FROM (SELECT kt, kb, w FROM x) PIVOT (max(w) FOR kt IN (DATE'1970-01-01' AS epoch, DATE'2024-02-29' AS leap))
