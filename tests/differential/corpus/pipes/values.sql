-- pipes from VALUES
VALUES (1, 'a'), (2, 'b'), (3, NULL) AS v(n, s) |> WHERE n > 1 |> SELECT s, n
