"""A server or client for calc.thrift with Apache Thrift's Python library, used by foreign_test.go.

    apache.py server PORT TRANSPORT PROTOCOL KIND
    apache.py client PORT TRANSPORT PROTOCOL

PYTHONPATH contains the generated code.
"""

import sys
import threading

from calc import Calculator, Clock
from calc.ttypes import Overflow, Point
from thrift.protocol import TBinaryProtocol, TCompactProtocol
from thrift.server import TNonblockingServer, TServer
from thrift.Thrift import TApplicationException
from thrift.transport import TSocket, TTransport


class Handler:
    def __init__(self):
        self.forgotten = 0
        self.lock = threading.Lock()

    def ping(self):
        pass

    def add(self, a, b):
        if not -(2**31) <= a + b < 2**31:
            raise Overflow(str(a + b))
        return a + b

    def move(self, point, by):
        for p in by:
            point.x += p.x
            point.y += p.y
        return point

    def echo(self, text):
        if text == "forgotten":
            with self.lock:
                return str(self.forgotten)
        return text

    def numbers(self, count):
        return list(range(count))

    def counts(self, words):
        return {w: words.count(w) for w in words}

    def forget(self, id):
        with self.lock:
            self.forgotten += id

    def fail(self, how):
        raise Exception(how)


PROTOCOLS = {
    "binary": TBinaryProtocol.TBinaryProtocolFactory,
    "compact": TCompactProtocol.TCompactProtocolFactory,
}
TRANSPORTS = {
    "buffered": TTransport.TBufferedTransportFactory,
    "framed": TTransport.TFramedTransportFactory,
}


def serve(port, transport, protocol, kind):
    processor = Calculator.Processor(Handler())
    socket = TSocket.TServerSocket("127.0.0.1", port)
    transport, protocol = TRANSPORTS[transport](), PROTOCOLS[protocol]()
    if kind == "simple":
        server = TServer.TSimpleServer(processor, socket, transport, protocol)
    elif kind == "threaded":
        server = TServer.TThreadedServer(processor, socket, transport, protocol, daemon=True)
    elif kind == "pool":
        server = TServer.TThreadPoolServer(processor, socket, transport, protocol, daemon=True)
        server.setNumThreads(2)
    elif kind == "nonblocking":
        server = TNonblockingServer.TNonblockingServer(processor, socket, protocol, protocol, threads=2)
    server.serve()


def call(port, transport, protocol):
    socket = TSocket.TSocket("127.0.0.1", port)
    socket.setTimeout(60000)
    wrapped = {"buffered": TTransport.TBufferedTransport, "framed": TTransport.TFramedTransport}[transport](socket)
    used = PROTOCOLS[protocol]().getProtocol(wrapped)
    wrapped.open()
    c = Calculator.Client(used)
    for i in range(100):
        assert c.add(i, 1) == i + 1
    try:
        c.add(2**31 - 1, 1)
        raise AssertionError("no exception")
    except Overflow as e:
        assert e.what == "2147483648", e
    p = c.move(Point(x=1, y=1, note="n", blob=b"blob"), [Point(x=2, y=3)])
    assert (p.x, p.y, p.note, p.blob) == (3, 4, "n", b"blob"), p
    for size in 0, 1, 70 << 10, 2 << 20:
        assert c.echo("x" * size) == "x" * size
    assert c.numbers(3) == [0, 1, 2]
    assert c.counts(["a", "b", "a"]) == {"a": 2, "b": 1}
    before = int(c.echo("forgotten"))
    for i in range(10):
        c.forget(5)
    c.ping()
    assert int(c.echo("forgotten")) == before + 50
    try:
        c.fail("broken")
        raise AssertionError("no exception")
    except TApplicationException as e:
        assert e.type == TApplicationException.INTERNAL_ERROR, e
    try:
        Clock.Client(used).now()
        raise AssertionError("no exception")
    except TApplicationException as e:
        assert e.type == TApplicationException.UNKNOWN_METHOD, e
    wrapped.close()


if sys.argv[1] == "server":
    serve(int(sys.argv[2]), *sys.argv[3:])
else:
    call(int(sys.argv[2]), *sys.argv[3:])
