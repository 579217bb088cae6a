-- listagg with an order
SELECT h, listagg(g, ',') WITHIN GROUP (ORDER BY g, id) AS l FROM g WHERE id < 40 GROUP BY h
