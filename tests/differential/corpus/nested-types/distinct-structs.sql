-- SELECT DISTINCT of structs and arrays
SELECT DISTINCT st, ab FROM np
