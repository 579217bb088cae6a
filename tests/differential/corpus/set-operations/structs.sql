-- arrays and structs in a set operation
SELECT xs, st FROM tree UNION SELECT array(1, 2, 2), named_struct('p', 7, 'q', 'in')
