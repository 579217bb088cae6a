-- literals and operations keep the width of ints
SELECT 1Y AS a, 2S AS b, 3 AS c, 4L AS d, 1Y + 2S AS f, 5 * 6L AS g, 7 / 2 AS h, 7 div 2 AS i
