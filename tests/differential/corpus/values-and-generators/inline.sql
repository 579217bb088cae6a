-- inline of an array of structs
SELECT id, inline(ps) FROM tree
