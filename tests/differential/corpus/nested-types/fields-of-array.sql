-- a field of every struct of an array
SELECT id, ast.f AS fs, deep.x AS xs FROM n
