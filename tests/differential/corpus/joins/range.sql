-- a range join: a point within an interval of the other side
SELECT x.id, q.name FROM x JOIN VALUES (-5, -1, 'low'), (0, 0, 'zero'), (1, 9, 'high') AS q(lo, hi, name) ON x.v BETWEEN q.lo AND q.hi
