-- SELECT DISTINCT with NULLs and duplicates
SELECT DISTINCT g, b FROM g
