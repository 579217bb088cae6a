-- sliding windows whose length is no multiple of the slide
SELECT window(taken, '45 minutes', '20 minutes', '-3 minutes') AS w, sensor, count(degrees) AS n
FROM readings GROUP BY 1, 2
