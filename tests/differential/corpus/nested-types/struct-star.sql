-- a star of a struct
SELECT id, st.* FROM tree
