-- null-safe equality joins NULL to NULL
SELECT x.id, y.id FROM x JOIN y ON x.k <=> y.k
