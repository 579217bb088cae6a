-- an alias read by a later item of the same list
SELECT v * 2 AS twice, twice + 1 AS more, more - v AS rest FROM x
