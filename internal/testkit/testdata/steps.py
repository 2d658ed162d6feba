"""Does steps at a Tarantool server with the client of its makers, and prints as JSON
which of them gave something else than was wanted.

Standard input: {"addr": host:port, "user", "password", "steps": [{"do", "want"}]}.
Expressions may name the connection as c, and what stands in NAMES below.
"""

import dataclasses
import json
import math
import sys
from decimal import Decimal
from uuid import UUID

import tarantool


def same(a, b):
    """Equal, and of the same types down to the last element. NaN is equal to itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(k in b and same(v, b[k]) for k, v in a.items())
    if isinstance(a, float):
        return a.hex() == b.hex()
    if isinstance(a, Decimal):
        return str(a) == str(b)
    if isinstance(a, tarantool.BoxError):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return a == b


def value(source):
    """The value of an expression. Replies are lists, errors of the server their numbers."""
    try:
        v = eval(source, NAMES)
    except tarantool.DatabaseError as error:
        return ("error", error.code, error.message)
    if isinstance(v, tarantool.response.Response):
        return list(v.data or [])
    return v


def extra(call):
    """What the server knows of the error that a call ends with."""
    try:
        call()
    except tarantool.DatabaseError as error:
        return error.extra_info
    return None


given = json.load(sys.stdin)
host, port = given["addr"].rsplit(":", 1)
NAMES = {
    "Adjust": tarantool.IntervalAdjust, "BoxError": tarantool.BoxError, "Datetime": tarantool.Datetime, "Decimal": Decimal,
    "Interval": tarantool.Interval, "UUID": UUID, "extra": extra, "inf": math.inf, "nan": math.nan,
    "c": tarantool.Connection(host, int(port), user=given["user"] or None, password=given["password"] or None, socket_timeout=20),
}
wrong = []
for done, step in enumerate(given["steps"], 1):
    got, want = value(step["do"]), value(step["want"])
    if not same(got, want):
        wrong.append({"Do": step["do"], "Got": repr(got), "Want": repr(want)})
print(json.dumps({"Done": done, "Wrong": wrong}))
