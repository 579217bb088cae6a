-- to_json of a struct with an array
SELECT id, to_json(named_struct('id', id, 'k', k, 'xs', xs)) AS j FROM tree
