-- an alias of a number does not hide a struct whose member is read
SELECT id AS st FROM tree ORDER BY st.p DESC, id
