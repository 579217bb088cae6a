-- LIKE ANY and LIKE ALL
SELECT id FROM e WHERE s LIKE ANY ('a%', '%ß%') OR s LIKE ALL ('%b%', '%c')
