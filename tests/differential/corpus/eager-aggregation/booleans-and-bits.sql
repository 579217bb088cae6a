-- booleans and bits
SELECT y.s, bool_and(x.kb) AS a, bool_or(x.kb) AS b, bit_and(x.v) AS c, bit_or(x.kl) AS d, bit_xor(x.v) AS e FROM x JOIN y ON x.ks = y.ks GROUP BY y.s
