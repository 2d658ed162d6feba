"""Asks for the paths on standard input with Python's standard library.

Arguments: protocol (h1), host:port or the path of a unix socket, the file of the
authority, that of a certificate and that of its key, and an API key; "-" is none. A line
out: status and body.
"""

import http.client
import socket
import ssl
import sys

_, address, authority, certificate, key, api_key = sys.argv[1:]


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(address)


if address.startswith("/"):
    connection = UnixConnection("localhost")
elif authority == "-":
    connection = http.client.HTTPConnection(address, timeout=20)
else:
    context = ssl.create_default_context(cafile=authority)
    if certificate != "-":
        context.load_cert_chain(certificate, key)
    connection = http.client.HTTPSConnection(address, timeout=20, context=context)
for path in sys.stdin:
    connection.request("GET", path.strip(), headers={} if api_key == "-" else {"X-API-Key": api_key})
    answer = connection.getresponse()
    print(answer.status, answer.read().decode())
