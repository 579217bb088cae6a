"""Reports on a run beside its plan: as numbers, as text and as an HTML page.

`analysis` has the numbers, `text` and `page` show them, `drawings` and `lineage_drawing` are the
pictures of the page. The command line and the step of the head stage both use it.
"""
