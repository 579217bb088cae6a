-- nvl2 chooses by NULL
SELECT id, nvl2(i, j, k) AS a, nvl2(s, 'x', 'y') AS b FROM e
