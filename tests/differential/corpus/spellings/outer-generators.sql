-- inline_outer and posexplode_outer keep rows without members
SELECT id, posexplode_outer(CASE WHEN v > 0 THEN array(k, v) END) FROM x
