-- arithmetic of ints within their range
SELECT id, k + n AS a, k * n AS b, k - n AS c, n % 7 AS d, -n AS f, n div 5 AS g FROM e
