-- to_json runs on Spark
-- on: some
SELECT id, to_json(named_struct('id', id, 'k', k, 'xs', xs)) AS j FROM tree
