-- EXCEPT of members of structs
SELECT * EXCEPT (k, st.q, xs, ys, m, ps, nested, s), tree.* EXCEPT (tree.st.p, xs, ys, m, ps, nested) FROM tree
