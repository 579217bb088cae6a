-- stars in struct()
SELECT struct(id AS aa, st.*) AS a, struct(*) AS b, struct(tree.*) AS c FROM (SELECT id, st FROM tree) AS tree
