"""A server or client for calc.thrift with thriftpy2, used by foreign_test.go.

    thriftpy.py server PORT TRANSPORT PROTOCOL KIND
    thriftpy.py client PORT TRANSPORT PROTOCOL

IDL is the path of calc.thrift.
"""

import os
import sys
import threading

import thriftpy2
from thriftpy2.protocol import TBinaryProtocolFactory, TCompactProtocolFactory
from thriftpy2.rpc import make_client, make_server
from thriftpy2.server import TSimpleServer, TThreadedServer
from thriftpy2.thrift import TApplicationException, TProcessor
from thriftpy2.transport import TBufferedTransportFactory, TFramedTransportFactory, TServerSocket

calc = thriftpy2.load(os.environ["IDL"], module_name="calc_thrift")

PROTOCOLS = {"binary": TBinaryProtocolFactory, "compact": TCompactProtocolFactory}
TRANSPORTS = {"buffered": TBufferedTransportFactory, "framed": TFramedTransportFactory}


class Handler:
    def __init__(self):
        self.forgotten = 0
        self.lock = threading.Lock()

    def ping(self):
        pass

    def add(self, a, b):
        if not -(2**31) <= a + b < 2**31:
            raise calc.Overflow(what=str(a + b))
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
        # After an undeclared exception, this library closes the connection without an answer.
        raise TApplicationException(TApplicationException.INTERNAL_ERROR, how)


def serve(port, transport, protocol, kind):
    server = {"simple": TSimpleServer, "threaded": TThreadedServer}[kind](
        TProcessor(calc.Calculator, Handler()),
        TServerSocket(host="127.0.0.1", port=port),
        iprot_factory=PROTOCOLS[protocol](),
        itrans_factory=TRANSPORTS[transport](),
    )
    server.daemon = True
    server.serve()


def client(service, port, transport, protocol):
    return make_client(
        service, "127.0.0.1", port, proto_factory=PROTOCOLS[protocol](), trans_factory=TRANSPORTS[transport](), timeout=60000
    )


def call(port, transport, protocol):
    c = client(calc.Calculator, port, transport, protocol)
    for i in range(100):
        assert c.add(i, 1) == i + 1
    try:
        c.add(2**31 - 1, 1)
        raise AssertionError("no exception")
    except calc.Overflow as e:
        assert e.what == "2147483648", e
    p = c.move(calc.Point(x=1, y=1, note="n", blob=b"blob"), [calc.Point(x=2, y=3)])
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
    c.close()
    c = client(calc.Clock, port, transport, protocol)
    try:
        c.now()
        raise AssertionError("no exception")
    except TApplicationException as e:
        assert e.type == TApplicationException.UNKNOWN_METHOD, e
    c.close()


if sys.argv[1] == "server":
    serve(int(sys.argv[2]), *sys.argv[3:])
else:
    call(int(sys.argv[2]), *sys.argv[3:])
