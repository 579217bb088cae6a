-- a star keeps the spelling of the table
SELECT * FROM `odd names`
