"""What a purge did: the page is `gone`, `stale` or still a `hit` afterwards, and what its client made of the answer."""

import sys
import time
import urllib.request


def look(url):
    with urllib.request.urlopen(url) as answer:
        answer.read()
        status = answer.headers["Cache-Status"]
    if "; hit" in status:
        return "stale" if "soft-purged" in status else "hit"
    return "gone"


def expect(client, what, url, purge, state, failure=None):
    """Stores a page, purges, and looks at the page. `failure` is what the client has to raise, or has to return as text."""
    # After a soft purge, the refresh behind the stale answer has to end first.
    deadline = time.monotonic() + 10
    while look(url) != "hit":
        if time.monotonic() > deadline:
            sys.exit(f"{url} is not stored")
        time.sleep(0.02)
    try:
        said = purge()
        said = said if isinstance(said, str) else ""
    except Exception as error:
        said = type(error).__name__
        if failure is None:
            sys.exit(f"{client}, {what}: {type(error)}: {error}")
    if failure is not None and failure not in said:
        sys.exit(f"{client}, {what}: `{failure}` was expected, not `{said}`")
    found = look(url)
    if found != state:
        sys.exit(f"{client}, {what}: the page is a {found}, not {state}")
    print(f"| {client} | {what} | {failure or 'success'} | {state} |", flush=True)
