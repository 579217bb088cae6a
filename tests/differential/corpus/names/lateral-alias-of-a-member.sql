-- a later item reads a member of an alias
SELECT st AS x, x.p + 1 AS y, y * 2 AS z FROM tree
