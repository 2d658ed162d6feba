"""A server that puts what it is given into SQL: sqlmap must find that, or what it
says of the gateway means nothing."""

import sqlite3
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, unquote, urlparse

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE orders (region TEXT, order_no INTEGER, customer TEXT)")
db.executemany("INSERT INTO orders VALUES (?, ?, ?)", [("emea", n, "Customer %d" % n) for n in range(50)])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlparse(self.path)
        if "key" in (query := parse_qs(url.query)):
            region, _, number = query["key"][0].partition("/")
        else:
            region, number = unquote(url.path.split("/")[2]), "17"
        try:
            rows = db.execute("SELECT customer FROM orders WHERE region = '%s' AND order_no = %s" % (region, number or 0)).fetchall()
            self.answer(200 if rows else 404, repr(rows))
        except sqlite3.Error as error:
            self.answer(500, str(error))

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
