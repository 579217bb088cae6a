-- a full join whose WHERE rejects NULL of one side
SELECT x.id, y.id FROM x FULL JOIN y ON x.k = y.k WHERE x.v IS NOT NULL
