-- description: A first query; replace it by one that reads a table of catalog.yaml
-- checks:
--   - row_count: {min: 1}
SELECT 'hello' AS greeting
