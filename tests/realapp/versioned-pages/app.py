"""A site of records. Its pages lie in Redis, each under a key with a version, and a change counts versions up.

    python3 app.py site PORT REDIS DATABASE      answers visitors
    python3 app.py office PORT REDIS DATABASE    changes records: POST /foo/3 with the site's Host

Both are processes of one application, with one database: records also change while the site is down. A page is written to Redis before it is
answered. REDIS is a URL, and whatever is wrong there costs the site a page in Redis, never an answer.
"""

import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

from redis import Redis, RedisError

HASH = "resource_versions"
RECORDS = 8
ON_A_PAGE = 4
BYTES = 8357
FOR_NOBODY_ELSE = "max-age=0, private, must-revalidate"

role, port, server, database = sys.argv[1:]
redis = Redis.from_url(server, decode_responses=True, socket_timeout=0.2)


def opened():
    return sqlite3.connect(database, timeout=10)


def list_of(number):
    """The target of the list that shows a record."""
    page = 1 + (number - 1) // ON_A_PAGE
    return "/foos" if page == 1 else f"/foos?page={page}"


def shown_on(target):
    """The records that a page shows; None where there is no such page."""
    if target == "/":
        return []
    numbers = range(1, RECORDS + 1)
    return [n for n in numbers if target in (f"/foo/{n}", list_of(n))] or None


def rendered(numbers):
    with opened() as connection:
        lines = []
        for number in numbers:
            [changes] = connection.execute("SELECT changes FROM foo WHERE id = ?", [number]).fetchone()
            lines.append(f"<p>record {number}, change {changes}</p>\n")
    head = "<!DOCTYPE html>\n<title>Records</title>\n" + "".join(lines)
    # Other bytes to the end, so that two bodies that were mixed are no body of either.
    filling = " ".join(lines).replace("<p>", "").replace("</p>\n", ".") or "Welcome."
    return (head + "<!-- " + filling * (BYTES // len(filling) + 1))[: BYTES - 4] + " -->"


def version_of(target):
    try:
        return redis.hget(HASH, target)
    except RedisError:
        return None


def write_back(url, target, version, body):
    """The first version is 0, and does not overwrite one that was set meanwhile."""
    try:
        redis.set(f"{url}:version={version or 0}", body)
        if version is None:
            # After the body: under this number an older one may lie there, if the versions were lost.
            redis.hsetnx(HASH, target, 0)
    except RedisError as error:
        print("not written:", error, file=sys.stderr)


def changed(site, target):
    """Called once the change is committed."""
    following = int(redis.hget(HASH, target) or 0) + 1
    with redis.pipeline(transaction=False) as pipeline:
        # Nothing lies there, unless the versions were lost and begin again.
        pipeline.delete(f"{site}{target}:version={following}")
        pipeline.hincrby(HASH, target, 1)
        pipeline.execute()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave together.
    wbufsize = -1

    def answer(self, status, body, cache_control=FOR_NOBODY_ELSE):
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Cache-Control", cache_control)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Site(Handler):
    def do_GET(self):
        if self.path == "/account":
            return self.answer(200, "<p>Only yours.</p>\n", "no-store")
        numbers = shown_on(self.path)
        if numbers is None:
            return self.answer(404, "<p>No such page.</p>\n", "no-store")
        # Before the records are read: what is older than a version may lie under it, never the other way.
        version = version_of(self.path)
        body = rendered(numbers)
        write_back(f"http://{self.headers['Host']}{self.path}", self.path, version, body)
        self.answer(200, body)

    do_HEAD = do_GET


class Office(Handler):
    def do_POST(self):
        number = int(self.path.removeprefix("/foo/"))
        with opened() as connection:
            connection.execute("UPDATE foo SET changes = changes + 1 WHERE id = ?", [number])
            [changes] = connection.execute("SELECT changes FROM foo WHERE id = ?", [number]).fetchone()
        for target in (f"/foo/{number}", list_of(number)):
            changed(f"http://{self.headers['Host']}", target)
        self.answer(200, str(changes))


def main():
    with opened() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS foo (id INTEGER PRIMARY KEY, changes INTEGER NOT NULL)")
        connection.executemany("INSERT OR IGNORE INTO foo VALUES (?, 0)", [(n + 1,) for n in range(RECORDS)])
    kind, handler = (ThreadingHTTPServer, Site) if role == "site" else (HTTPServer, Office)
    kind(("127.0.0.1", int(port)), handler).serve_forever()


main()
