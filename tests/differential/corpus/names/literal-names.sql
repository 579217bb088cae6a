-- the names of literals without alias
SELECT 1, 'a', 1.50, true, NULL, DATE'2024-02-29', -3, array(1, 2)
