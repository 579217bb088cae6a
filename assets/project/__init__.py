"""A folder of queries as authors wrote it: files, front matter, names, parameters, partitions.

Nothing is planned here and no table is looked at; `dependencies` tells whose table a query reads.
"""
