"""Writes the tables of this folder: which server real clients give each key to.

Needs Debian's memcached, python3-pylibmc and nginx-light, root, and ports 11211, 11311 and 22122 on 127.0.0.1 to 127.0.0.4.
Five servers are started. pylibmc stores each key, and the server that has it then is its place. For nginx each server has each
key with its own number for a value, and the number in the answer is the place.
Run it in this folder with Debian's own Python: /usr/bin/python3 make.py
"""

import contextlib
import os
import socket
import subprocess
import tempfile
import time

import pylibmc

SOCKET = "/tmp/five.sock"
SERVERS = ["127.0.0.1:11211", "127.0.0.2:11211", "127.0.0.3:22122", "127.0.0.4:11311", "unix:" + SOCKET]
GROUPS = {"three": {0: 1, 1: 1, 2: 1}, "two": {0: 1, 2: 1}, "weights": {0: 1, 1: 2, 2: 3, 3: 1}, "unix": {0: 1, 1: 1, 4: 1}}
# nginx's variables cannot have what ends or escapes an argument, so half of the keys are plain.
KEYS = ["k", "/", "/index.html", "a" * 250, "sha256-" + "0f" * 32, "/caf%C3%A9", "/\u00e9", "/\u00fc\u00ff"]
KEYS += [f"/page/{n}" for n in range(110)] + [f"/page/{n}?x={n * 7}" for n in range(40)]


def connect(address):
    if address.startswith("unix:"):
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(address.removeprefix("unix:"))
        return stream
    host, port = address.split(":")
    return socket.create_connection((host, int(port)))


def command(stream, line):
    stream.sendall(line)
    reply = b""
    while not reply.endswith((b"END\r\n", b"OK\r\n", b"STORED\r\n")):
        reply += stream.recv(65536)
    return reply


def by_pylibmc(streams, group, behaviour):
    for place in group:
        command(streams[place], b"flush_all\r\n")
    time.sleep(1.1)
    # A weight other than 1 is behind the port.
    names = [SERVERS[place] + (f":{weight}" if weight > 1 else "") for place, weight in group.items()]
    client = pylibmc.Client(names, behaviors={behaviour: True})
    for key in KEYS:
        client.set(key.encode(), b"x")
        has = [place for place in group if b"VALUE" in command(streams[place], b"get %s\r\n" % key.encode())]
        assert len(has) == 1, (key, has)
        yield key, has[0]


def by_nginx(streams, group):
    keys = [key for key in KEYS if key.isascii() and not set(key) & set("?%&=")]
    for place in group:
        for key in keys:
            command(streams[place], b"set %s 0 0 1\r\n%d\r\n" % (key.encode(), place))
    with tempfile.TemporaryDirectory() as folder:
        servers = "".join(f"server {SERVERS[place]} weight={weight};" for place, weight in group.items())
        with open(f"{folder}/nginx.conf", "w") as config:
            config.write(
                f"daemon off; user root; pid {folder}/pid; error_log {folder}/log; events {{}} http {{ access_log off;"
                f"upstream m {{ hash $arg_k consistent; {servers} }}"
                f"server {{ listen unix:{folder}/s; location / {{ set $memcached_key $arg_k; memcached_pass m; }} }} }}"
            )
        nginx = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf"])
        time.sleep(1)
        for key in keys:
            stream = connect(f"unix:{folder}/s")
            stream.sendall(b"GET /?k=%s HTTP/1.0\r\n\r\n" % key.encode())
            answer = b"".join(iter(lambda: stream.recv(65536), b""))
            assert b" 200 " in answer, answer
            yield key, int(answer[-1:])
        nginx.terminate()
        nginx.wait()


def write(name, group, how, placed):
    with open(name, "w") as table:
        table.write(f"# The place of each key among the servers, by {how}. Made by make.py.\n")
        table.write("servers " + " ".join(f"{SERVERS[place]}={weight}" for place, weight in group.items()) + "\n")
        for key, place in placed:
            table.write(f"{list(group).index(place)} {key}\n")


with contextlib.ExitStack() as started:
    for address in SERVERS:
        host, _, port = address.partition(":")
        where = ["-s", port] if host == "unix" else ["-l", host, "-p", port]
        process = subprocess.Popen(["memcached", "-u", "root", "-U", "0", *where])
        started.callback(process.wait)
        started.callback(process.terminate)
    time.sleep(1)
    streams = [connect(address) for address in SERVERS]
    version = subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.strip().removeprefix("nginx version: ")
    for name, group in GROUPS.items():
        library = f"pylibmc {pylibmc.__version__} on libmemcached {pylibmc.libmemcached_version}"
        # It does not mix TCP and Unix sockets.
        if name != "unix":
            write(f"ketama-{name}", group, library + " with ketama_weighted", by_pylibmc(streams, group, "ketama_weighted"))
            write(f"consistent-{name}", group, library + " with ketama", by_pylibmc(streams, group, "ketama"))
        write(f"nginx-{name}", group, version + " with hash consistent", by_nginx(streams, group))
if os.path.exists(SOCKET):
    os.remove(SOCKET)
