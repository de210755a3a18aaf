"""plone.cachepurging's purger: at once, and by its queue, which tries five times what is refused."""

import json
import sys

from plone.cachepurging.purger import DefaultPurger
from seen import expect

place = json.loads(sys.argv[1])


def at_once(url):
    status, _, error = DefaultPurger().purgeSync(url)
    return f"{status} {error}".strip()


def by_queue(url):
    purger = DefaultPurger()
    purger.purgeAsync(url)
    queue, worker = purger.getQueueAndWorker(url)
    # Behind the purge: the worker ends there.
    queue.put(None)
    worker.join(30)
    assert not worker.is_alive(), "the queue is stuck"


for kind, state in [("hard", "gone"), ("soft", "stale"), ("closed", "hit")]:
    for path in ["/news/first", "/VirtualHostBase/http/www.example.org:80/Plone/VirtualHostRoot/news/first"]:
        url = f"http://{place[kind]}{path}"
        what = f"{kind}, {'virtual host monster' if 'Virtual' in path else 'a page'}"
        failure = "405" if kind == "closed" else "200"
        expect("plone.cachepurging, at once", what, url, lambda: at_once(url), state, failure)
        expect("plone.cachepurging, queue", what, url, lambda: by_queue(url), state)
