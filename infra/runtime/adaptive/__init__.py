"""What is decided when a stage starts, from the real sizes of what it reads.

Pure functions, one decision a module. In: the fragment and the sizes in upstream manifests. Out:
which task reads what, never which stages there are. A decision changes neither fingerprint nor
rows of a stage, only how many map files they lie in and in which order.

    coalesce   neighbouring small partitions are read by one task
    skew       a partition much larger than the others is read by several tasks
    empty      what cannot contribute a row is not read
"""
