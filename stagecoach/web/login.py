"""The login page for browsers, shown at whatever address was asked for.

The form is sent to the same address, and the answer to it leads there again by a relative address.
So the page works below any path of a reverse proxy, and cannot lead to another site. It runs no
script.
"""

from __future__ import annotations

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stagecoach</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{refresh}
<style>
:root {{ color-scheme: light dark; --soft: #5b6672; --bad: #b42318 }}
@media (prefers-color-scheme: dark) {{ :root {{ --soft: #9aa5b1; --bad: #ff8a80 }} }}
body {{ font: 15px system-ui, sans-serif; margin: 18vh auto 0; max-width: 22rem; padding: 0 1rem }}
input, button {{ box-sizing: border-box; font: inherit; margin-top: .6rem; padding: .5rem;
  width: 100% }}
p {{ color: var(--bad) }}
small {{ color: var(--soft); display: block; margin-top: .6rem }}
</style></head>
"""
_BODY = """<body><h1>Stagecoach</h1>
<form method="post" action="">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Log in</button>
</form>{problem}
<small>The token that <code>stagecoach ui</code> was started with.</small>
</body></html>
"""
_REFRESH = '\n<meta http-equiv="refresh" content="0">'
_WRONG = "\n<p>This is not the token.</p>"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"
)


def login_page(*, is_wrong: bool = False, load_again: bool = False) -> str:
    """The page.

    Args:
        is_wrong: Whether it follows a wrong token.
        load_again: Whether the browser is to ask once more. Where a link on another site led here,
            the browser has not sent the cookie (`SameSite=Strict`); when the page itself asks, it
            does.
    """
    head = _HEAD.format(refresh=_REFRESH if load_again else "")
    return head + _BODY.format(problem=_WRONG if is_wrong else "")
