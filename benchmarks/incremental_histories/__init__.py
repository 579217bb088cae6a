"""Random histories of tables whose files come, go and change, with a run of a query each time.

A run that takes over what an earlier one computed must give the rows of a run that computes
everything, and those of plain Spark. Between the steps gc removes what has expired, and files of
outputs get lost.
"""
