"""What is decided when a stage starts, from the real sizes of what it reads.

Pure functions, one decision a module. In: the fragment and the sizes in upstream manifests. Out:
which task reads what, never which stages there are. A decision changes neither fingerprint nor
rows of a stage, only how many map files they lie in and in which order.

    coalesce   neighbouring small partitions are read by one task
    skew       a partition much larger than the others is read by several tasks
    broadcast  a small input of a join is read whole by every task, beside whole map files
    prune      files and row groups without a key of the build side are not read
    passing    a partial aggregate that a sample shows not to reduce its rows is left out
    empty      what cannot contribute a row is not read
    ranges     sorted files are merged by several tasks, each a range of the first sort key

Each has a switch of its name, `adaptive_skew` for example, and `adaptive` is one for all of them.

A hint in the query comes first (`requested`): its number of tasks is not changed.
"""
