"""Functions of the project: where their code is, how it is loaded, and how it is called over Arrow.

    declaration ─▶ source (a digest of it is in the plan) ─▶ loaded in a worker ─▶ called over Arrow

Worker code. Planning only looks for the source: a module of the project is imported where it runs.
"""
