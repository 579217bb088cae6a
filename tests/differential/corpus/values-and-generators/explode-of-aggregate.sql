-- explode of a collected list
SELECT k, explode(sort_array(collect_list(v))) AS v FROM x GROUP BY k
