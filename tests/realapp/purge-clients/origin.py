"""An origin whose pages carry tags: `site`, and each segment of their path. A page says how often it was made."""

import itertools
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

made = itertools.count(1)


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = f"{self.path} {next(made)}\n".encode()
        segments = self.path.split("?")[0].strip("/").replace("/", " ")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=86400, stale-while-revalidate=3600")
        self.send_header("Surrogate-Key", f"site {segments}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
