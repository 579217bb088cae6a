-- the median and mean salary of each department
-- rounded: 2
SELECT department, median(salary) AS mid, avg(double(salary)) AS mean, count(*) AS people FROM employees GROUP BY department
