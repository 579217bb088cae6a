-- IN in the select list gives true, false or NULL
SELECT id, k IN (SELECT k FROM y WHERE k <> 4) AS known, k NOT IN (SELECT k FROM z) AS all_true FROM x
