-- zip_with of arrays of unlike length
SELECT id, zip_with(ai, bi, (x, y) -> coalesce(x, y)) AS a, arrays_zip(sa, sb) AS b FROM n
