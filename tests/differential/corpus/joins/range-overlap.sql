-- two intervals that overlap
SELECT a.id, b.id FROM x a JOIN x b ON a.id < b.id AND a.k <= b.v AND b.k >= a.v AND a.kb = b.kb
