-- NaN equals NaN and -0.0 equals 0.0 as join keys
SELECT x.id, y.id, x.kd, y.kd FROM x JOIN y ON x.kd = y.kd
