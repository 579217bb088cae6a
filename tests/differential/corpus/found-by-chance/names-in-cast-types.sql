-- names of members in the type of a cast keep their case and their blanks
SELECT id, CAST(struct(id, struct(s)) AS STRUCT<`B c`: INT, Inner: STRUCT<`x Y`: STRING>>) AS c, CAST(NULL AS struct<`a-b`:int,`c``d`:ARRAY<STRUCT<Ef:int>>>) AS n FROM e
