-- to_json runs on Spark: its numbers and escapes are not proven
-- on: some
SELECT id, to_json(named_struct('id', id, 'k', k, 'xs', xs)) AS j FROM tree
