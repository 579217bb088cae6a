-- binaries are compared, joined and concatenated
SELECT id, bin = X'61' AS a, bin < X'62' AS b, octet_length(bin) AS c, hex(bin) AS d, concat(bin, X'00') AS f FROM e
