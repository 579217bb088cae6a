-- range with start, end, a negative step and partitions
SELECT id * id AS sq FROM range(10, -5, -4, 3)
