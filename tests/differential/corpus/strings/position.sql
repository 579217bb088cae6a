-- position, instr, locate, contains, startswith and endswith
SELECT id, position('b' IN s) AS a, instr(s, 'c') AS b, contains(s, t) AS c, startswith(s, 'a') AS d, endswith(s, 'c') AS f FROM e
