-- an anti join on null-safe equality
SELECT id FROM x LEFT ANTI JOIN y ON x.kl <=> y.kl AND x.kt <=> y.kt
