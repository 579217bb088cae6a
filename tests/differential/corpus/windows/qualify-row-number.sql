-- QUALIFY of row_number
SELECT id, k, v FROM x QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, id) = 1
