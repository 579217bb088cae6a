-- a join on structs
SELECT a.id, b.id FROM np a JOIN n b ON a.st = b.st AND a.k = b.k
