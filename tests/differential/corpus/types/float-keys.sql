-- a float and a double key in a join
SELECT a.id, b.id FROM g a JOIN g b ON a.gf = b.gd AND a.h = b.h AND a.id < 30 AND b.id < 60
