-- names are resolved without case and keep the spelling of the query
SELECT ID, Id AS iD, X.V, upper(S) AS `Upper S` FROM X WHERE KB
