-- an int key meets a string key by Spark's cast
SELECT x.id, q.n FROM x JOIN VALUES ('1', 'one'), (' 2 ', 'two'), (NULL, 'none') AS q(k, n) ON x.k = q.k
