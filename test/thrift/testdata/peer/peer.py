"""Answers requests of reference_test.go with code that the compiler of Apache Thrift has generated.

A request is a line of words; so is the answer, whose first word is ok or error. Bytes are hexadecimal.
"""

import importlib
import logging
import struct
import sys

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer


def protocol(name, data=b""):
    buffer = TMemoryBuffer(data)
    if name == "compact":
        return TCompactProtocol(buffer)
    strict = name == "binary"
    return TBinaryProtocol(buffer, strictRead=strict, strictWrite=strict)


def written(p):
    return p.trans.getvalue().hex() or "-"


def dump(value, ttype, args):
    if ttype == TType.BOOL:
        return "true" if value else "false"
    if ttype in (TType.BYTE, TType.I16, TType.I32, TType.I64):
        return str(value)
    if ttype == TType.DOUBLE:
        return struct.pack(">d", value).hex()
    if ttype == TType.STRING:
        return '"%s"' % (value if isinstance(value, bytes) else value.encode("utf-8")).hex()
    if ttype in (TType.LIST, TType.SET):
        elements = [dump(v, args[0], args[1]) for v in value]
        return "[" + ",".join(sorted(elements) if ttype == TType.SET else elements) + "]"
    if ttype == TType.MAP:
        return "<" + ",".join(sorted(dump(k, args[0], args[1]) + "=" + dump(v, args[2], args[3]) for k, v in value.items())) + ">"
    fields = sorted((f for f in specs(value) if f), key=lambda f: f[0])
    return "{" + "".join(
        "%d:%s," % (f[0], dump(getattr(value, f[2]), f[1], f[3])) for f in fields if getattr(value, f[2]) is not None
    ) + "}"


def specs(value):
    return value.thrift_spec or ()


def kind(name):
    module, name = name.split(".")
    return getattr(importlib.import_module("peer.%s.ttypes" % module), name)


def struct_and_bytes(name, value):
    out = protocol(name)
    value.write(out)
    return "ok", dump(value, TType.STRUCT, None), written(out)


def read(name, type_name, data):
    p = protocol(name, bytes.fromhex(data))
    value = kind(type_name)()
    if isinstance(value, TException):
        value = value.read(p)  # exceptions are immutable
    else:
        value.read(p)
    return struct_and_bytes(name, value)


def new(name, type_name):
    return struct_and_bytes(name, kind(type_name)())


def message(name, data):
    p = protocol(name, bytes.fromhex(data))
    function, message_type, seq = p.readMessageBegin()
    out = protocol(name)
    out.writeMessageBegin(function, message_type, seq)
    text = "%s|%d|%d" % (function, message_type, seq)
    if message_type == TMessageType.EXCEPTION:
        e = TApplicationException()
        e.read(p)
        e.write(out)
        text += "|%d|%s" % (e.type, e.message)
    return "ok", text.encode().hex(), written(out)


class Handler:
    def __init__(self):
        self.forgotten = 0

    def ping(self):
        pass

    def find(self, query, limit):
        from peer.shop.ttypes import Closed, NotFound, Order

        if query.text == "missing":
            raise NotFound(id=5, message="none")
        if query.text == "closed":
            raise Closed()
        if query.text == "fails":
            raise ValueError("failed")
        return Order(id=limit, name=query.text)

    def forget(self, id):
        self.forgotten = id

    def all(self, states):
        from peer.shop.ttypes import Order

        return [Order(id=s) for s in sorted(states)]

    def has(self, id):
        return id == 1


def serve(name, data):
    from peer.shop.Orders import Processor

    handler = Handler()
    out = protocol(name)
    Processor(handler).process(protocol(name, bytes.fromhex(data)), out)
    return "ok", str(handler.forgotten), written(out)


def call(name, function):
    from peer.shop.Orders import Client
    from peer.shop.ttypes import Query

    out = protocol(name)
    client = Client(protocol(name), out)
    if function == "find":
        client.send_find(Query(text="q"), 7)
    elif function == "forget":
        client.send_forget(9)
    elif function == "all":
        client.send_all({5})
    else:
        client.send_ping()
    return "ok", "-", written(out)


def answer(name, data):
    from peer.shop.Orders import Client
    from peer.shop.ttypes import Closed, NotFound

    client = Client(protocol(name, bytes.fromhex(data)), protocol(name))
    try:
        order = client.recv_find()
    except (NotFound, Closed) as e:
        return "ok", type(e).__name__, dump(e, TType.STRUCT, None)
    except TApplicationException as e:
        return "ok", "TApplicationException", "%d|%s" % (e.type, e.message)
    return "ok", "Order", dump(order, TType.STRUCT, None)


COMMANDS = {"read": read, "new": new, "message": message, "serve": serve, "call": call, "answer": answer}


def main():
    logging.disable()
    for line in sys.stdin:
        words = line.split()
        try:
            result = COMMANDS[words[0]](*words[1:])
        except Exception as e:  # The test says what may fail.
            result = "error", repr(e)
        print(" ".join(result).replace("\n", " "), flush=True)


main()
