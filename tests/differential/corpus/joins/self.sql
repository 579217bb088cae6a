-- a self join by two aliases
SELECT a.id, b.id FROM x a JOIN x b ON a.k = b.k AND a.id < b.id
