"""What the planner knows of engines: one folder per engine, found by its name.

An engine says which fragments it may run (`PlannerEngine.refusal`) and how it writes them
(`Dialect`). Nothing else in the planner depends on which engines there are.
"""
