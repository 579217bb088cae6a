-- a range without numbers is empty
SELECT count(*) AS n, sum(id) AS s FROM range(5, 5)
