-- regexp is rlike
SELECT id FROM x WHERE s regexp 'a' OR regexp(ks, '^b')
