-- a star of one side of a join with EXCEPT
SELECT x.* EXCEPT (kd, kc, kt), y.id AS yid FROM x JOIN y ON x.k = y.k
