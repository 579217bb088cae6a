-- A text with an exponent that rounds to a decimal out of range is an error
SELECT CAST(a AS DECIMAL(4,2)) AS c FROM VALUES ('9.9999e1') AS t(a)
