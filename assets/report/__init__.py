"""How a run of a query went beside its plan: in, its manifests; out, numbers, text, an HTML page.

`analysis` has the numbers, `text` and `page` show them, `drawings` and `lineage_drawing` are the
pictures of the page. The command line and the step of the head stage both use it.
"""
