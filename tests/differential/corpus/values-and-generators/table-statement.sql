-- TABLE as a query and a branch
TABLE u UNION ALL TABLE none
