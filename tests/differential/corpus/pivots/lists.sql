-- PIVOT of lists, empty where there is no row
SELECT country, array_sort(gold) AS g, array_sort(silver) AS s FROM (
  SELECT * FROM (SELECT country, tier, id FROM customers) PIVOT (collect_list(id) FOR tier IN ('gold', 'silver')))
