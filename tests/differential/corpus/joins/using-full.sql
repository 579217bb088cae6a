-- USING of a full join coalesces the key
SELECT k, x.id, y.id, x.k AS xk, y.k AS yk FROM x FULL JOIN y USING (k)
