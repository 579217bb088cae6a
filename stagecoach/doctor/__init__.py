"""`stagecoach doctor`: looks whether everything that a run needs is there, and says what to do.

A check is a module of `checks/`; `registry` lists them in their order.
"""
