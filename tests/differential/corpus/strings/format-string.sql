-- printf and format_number
SELECT id, format_string('%d-%s', i, s) AS a, format_number(d152, 2) AS b FROM e
