-- ORDER BY an array with NULLs last
SELECT ai, id FROM np ORDER BY ai NULLS LAST, id LIMIT 25
