"""Sends the requests on standard input with Python's standard library.

A line in: method, URL and fields, with tabs between them. A line out: status,
length and SHA-256 of the decoded body, and the fields, in lower case. The first
argument is the module to send them with.
"""

import hashlib
import http.client
import sys
import urllib.error
import urllib.parse
import urllib.request
import zlib


def decode(coding, body):
    if coding == "gzip" and body:
        stream = zlib.decompressobj(31)
        decoded = stream.decompress(body) + stream.flush()
        # One member, complete, and nothing behind it.
        if not stream.eof or stream.unused_data:
            raise SystemExit("the gzip member does not end with the body")
        return decoded
    return body


connection = None


def by_http_client(method, url, fields):
    global connection
    parts = urllib.parse.urlsplit(url)
    if connection is None:
        connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    connection.putrequest(method, url[len("http://" + parts.netloc) :], skip_accept_encoding=True)
    for name, value in fields:
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.getheaders(), answer.read()


def by_urllib(method, url, fields):
    request = urllib.request.Request(url, method=method, headers=dict(fields))
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.getheaders(), answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers.items(), answer.read()


send = {"http.client": by_http_client, "urllib": by_urllib}[sys.argv[1]]
for line in sys.stdin:
    method, url, *fields = line.rstrip("\n").split("\t")
    status, answered, body = send(method, url, [f.split(": ", 1) for f in fields])
    answered = {name.lower(): value for name, value in answered}
    body = decode(answered.get("content-encoding"), body)
    print(status, len(body), hashlib.sha256(body).hexdigest(), *["%s: %s" % f for f in answered.items()], sep="\t")
