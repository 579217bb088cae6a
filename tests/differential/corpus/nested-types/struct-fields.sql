-- fields of structs, nested and quoted
SELECT id, st.f, sn.p.q AS q, sn.`A b` AS ab, n.st.g AS g FROM n
