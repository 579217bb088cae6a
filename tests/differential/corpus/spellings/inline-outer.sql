-- inline_outer of no structs gives one row of NULLs
SELECT id, inline_outer(CASE WHEN v > 0 THEN array(named_struct('p', k, 'q', ks)) END) FROM x
