"""Answers requests of reference_test.go with thriftpy2, which reads the IDL itself.

A request is a line of words; so is the answer, whose first word is ok or error. Bytes are hexadecimal.
The argument is the folder with the IDL.
"""

import os
import struct
import sys

import thriftpy2
from thriftpy2.protocol import TBinaryProtocol, TCompactProtocol
from thriftpy2.thrift import TApplicationException, TClient, TMessageType, TProcessor, TType
from thriftpy2.transport import TMemoryBuffer

modules = {}


def module(name):
    if name not in modules:
        for folder in "", "lib":
            path = os.path.join(sys.argv[1], folder, name + ".thrift")
            if os.path.exists(path):
                modules[name] = thriftpy2.load(path, name + "_thrift")
    return modules[name]


def protocol(name, data=b""):
    buffer = TMemoryBuffer(data)
    if name == "compact":
        return TCompactProtocol(buffer)
    strict = name == "binary"
    return TBinaryProtocol(buffer, strict_read=strict, strict_write=strict)


def written(p):
    return p.trans.getvalue().hex() or "-"


def dump(value, ttype, spec=None):
    if isinstance(ttype, (tuple, list)):
        ttype, spec = ttype
    if ttype == TType.BOOL:
        return "true" if value else "false"
    if ttype in (TType.BYTE, TType.I16, TType.I32, TType.I64):
        return str(int(value))
    if ttype == TType.DOUBLE:
        return struct.pack(">d", value).hex()
    if ttype in (TType.STRING, TType.BINARY):
        return '"%s"' % (value if isinstance(value, bytes) else value.encode("utf-8")).hex()
    if ttype in (TType.LIST, TType.SET):
        elements = [dump(v, spec) for v in value]
        return "[" + ",".join(sorted(elements) if ttype == TType.SET else elements) + "]"
    if ttype == TType.MAP:
        return "<" + ",".join(sorted(dump(k, spec[0]) + "=" + dump(v, spec[1]) for k, v in value.items())) + ">"
    text = "{"
    for field, s in sorted(value.thrift_spec.items()):
        one = getattr(value, s[1])
        if one is not None:
            text += "%d:%s," % (field, dump(one, s[0], s[2] if len(s) == 4 else None))
    return text + "}"


def new(name, type_name, data=None):
    file, type_name = type_name.split(".")
    value = getattr(module(file), type_name)()
    if data is not None:
        value.read(protocol(name, bytes.fromhex(data)))
    out = protocol(name)
    value.write(out)
    return "ok", dump(value, TType.STRUCT), written(out)


def message(name, data):
    p = protocol(name, bytes.fromhex(data))
    function, message_type, seq = p.read_message_begin()
    out = protocol(name)
    out.write_message_begin(function, message_type, seq)
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
        shop = module("shop")
        if query.text == "missing":
            raise shop.NotFound(id=5, message="none")
        if query.text == "closed":
            raise shop.Closed()
        return shop.Order(id=limit, name=query.text)

    def forget(self, id):
        self.forgotten = id

    def all(self, states):
        return [module("shop").Order(id=s) for s in sorted(states)]

    def has(self, id):
        return id == 1


def serve(name, data):
    handler = Handler()
    out = protocol(name)
    TProcessor(module("shop").Orders, handler).process(protocol(name, bytes.fromhex(data)), out)
    return "ok", str(handler.forgotten), written(out)


def call(name, function):
    out = protocol(name)
    client = TClient(module("shop").Orders, protocol(name), out)
    args = {
        "find": lambda: {"query": module("shop").Query(text="q"), "limit": 7},
        "forget": lambda: {"id": 9},
        "all": lambda: {"states": {5}},
        "ping": dict,
    }
    client._send(function, **args[function]())
    return "ok", "-", written(out)


def answer(name, data):
    shop = module("shop")
    client = TClient(shop.Orders, protocol(name, bytes.fromhex(data)), protocol(name))
    try:
        order = client._recv("find")
    except (shop.NotFound, shop.Closed) as e:
        return "ok", type(e).__name__, dump(e, TType.STRUCT)
    except TApplicationException as e:
        return "ok", "TApplicationException", "%d|%s" % (e.type, e.message)
    return "ok", "Order", dump(order, TType.STRUCT)


COMMANDS = {"read": new, "new": new, "message": message, "serve": serve, "call": call, "answer": answer}

for line in sys.stdin:
    words = line.split()
    try:
        result = COMMANDS[words[0]](*words[1:])
    except Exception as e:  # The test says what may fail.
        result = "error", repr(e)
    print(" ".join(result).replace("\n", " "), flush=True)
