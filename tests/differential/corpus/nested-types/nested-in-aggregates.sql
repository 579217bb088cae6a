-- max, collect_list and count of nested values
SELECT k, max(st.f) AS a, count(ai) AS b, sum(size(sa)) AS c FROM np GROUP BY k
