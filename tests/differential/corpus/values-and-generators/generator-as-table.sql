-- a generator as a table
SELECT col FROM explode(array(3, NULL, 3)) UNION ALL SELECT pos FROM posexplode(array('a', 'b'))
