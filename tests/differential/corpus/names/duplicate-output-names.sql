-- one name several times in the output
SELECT k, v AS k, ks AS k FROM x
