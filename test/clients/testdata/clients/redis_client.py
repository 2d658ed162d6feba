"""Asks a gateway with redis-py and prints what its user gets, as JSON.

Arguments: port, user, password.
"""

import json
import sys

import redis

port, user, password = int(sys.argv[1]), sys.argv[2], sys.argv[3]


def client(**options):
    return redis.Redis(port=port, decode_responses=True, socket_timeout=20, **options)


def code(call):
    """The code of the error that a call ends with; redis-py takes some off."""
    try:
        call()
    except redis.exceptions.ReadOnlyError:
        return "READONLY"
    except redis.exceptions.NoPermissionError:
        return "NOPERM"
    except redis.exceptions.AuthenticationError as error:
        return "WRONGPASS" if "invalid username-password" in str(error) else "NOAUTH"
    except redis.exceptions.ResponseError as error:
        return "WRONGPASS" if str(error).startswith("WRONGPASS ") else "ERR"
    return "none"


def transaction():
    with r.pipeline(transaction=True) as p:
        p.get("depts:42")
        p.execute()


r = client(username=user, password=password, client_name="library", health_check_interval=1)
with r.pipeline(transaction=False) as p:
    pipeline = p.get("orders:emea:17").get("depts:42").exists("depts:42").execute()
with r.pipeline(transaction=False) as p:
    for i in range(1000):
        p.get("key:%012d" % (i % 100))
    flood = sum(json.loads(text)["hits"] == i % 100 for i, text in enumerate(p.execute()))
listener = r.pubsub()
print(json.dumps({
    "ping": r.ping(),
    "get": r.get("depts:42"),
    "missing": r.get("depts:9999999"),
    "mget": r.mget("depts:42", "depts:9999999", "orders:emea:17"),
    "exists": r.exists("depts:42", "depts:9999999", "orders:emea:17"),
    "strlen": r.strlen("depts:42"),
    "ttl": r.ttl("depts:42"),
    "type": r.type("depts:42"),
    "role": r.info("replication")["role"],
    "name": r.client_getname(),
    "pipeline": pipeline,
    "flood": flood,
    "set": code(lambda: r.set("depts:42", "x")),
    "key": code(lambda: r.get("depts:x")),
    "resource": code(lambda: r.get("nothing:1")),
    "secret": code(lambda: r.get("secrets:1")),
    "transaction": code(transaction),
    "subscribe": code(lambda: (listener.subscribe("news"), listener.get_message(timeout=5))),
    "password": code(lambda: client(username=user, password="wrong").ping()),
    "nobody": code(lambda: client().ping()),
}))
