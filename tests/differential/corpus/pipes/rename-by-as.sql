-- AS names the input for later pipes
FROM t |> AS first |> JOIN u AS second ON first.a = second.a |> SELECT first.id, second.id AS uid
