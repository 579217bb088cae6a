-- VALUES as a query
VALUES (1, 'a'), (2, NULL), (1, 'a')
