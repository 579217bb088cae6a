-- parentheses change what is subtracted
SELECT a FROM t EXCEPT (SELECT a FROM u EXCEPT SELECT 2)
