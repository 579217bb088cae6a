-- IN lists of unlike types
SELECT id FROM e WHERE k IN (1, 2.0, 3L) OR dt IN ('2024-02-29') OR d52 IN (0, 1)
