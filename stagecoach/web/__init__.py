"""Protection of the web servers that `stagecoach ui` starts.

Dagster's webserver has no login, answers every `Host`, and runs mutations of GET requests and of
foreign pages. The `Guard` of this package is an ASGI middleware that is put before it, and before
the servers of run pages and metrics, so that all three follow one policy.

    policy.py        which hosts, origins and token are accepted
    token.py         comparing the shared token, and the cookie that stands for it
    guard.py         the middleware
    graphql_rules.py which GraphQL documents a GET request may carry
    login.py         the login page
    serving.py       serving an application in a thread of this process
    dagster_dev.py   starting Dagster with the middleware; the only module that uses its internals
"""
