-- decimal keys with unlike scales
SELECT x.id, t.id FROM x JOIN t ON x.kc = t.c
