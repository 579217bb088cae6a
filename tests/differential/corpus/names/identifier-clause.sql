-- IDENTIFIER as a table and a column
SELECT IDENTIFIER('id'), IDENTIFIER('x.v') FROM IDENTIFIER('x')
