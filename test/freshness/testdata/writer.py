"""Writes to the database of the freshness test as a foreign program would, and
logs every write: "begin" before it is sent, "ack" after its commit returned.

Entities (the keys of the log):
  r<id>        the row of root <id>
  k<id>        the kids of root <id> that have no slot, which all change together
  s<slot>@<id> the kid with the slot, at root <id>: INSERT OR REPLACE moves it
  m<id>@<gid>  root <id> in group <gid>: UPDATE moves it

usage: writer.py DATABASE wal|delete LOG SEED REPLACE_EVERY_SECONDS
"""
import os, random, sqlite3, sys, time

path, journal, log_path, seed, replace_every = sys.argv[1:6]
rng = random.Random(int(seed))
log = open(log_path, "a", buffering=1)


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def connect(path):
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("PRAGMA journal_mode = " + journal)
    db.execute("PRAGMA synchronous = OFF")
    return db


def transaction(db, changed, *statements):
    """Runs the statements in one transaction. changed lists (entity, gone)."""
    version = now()
    for entity, gone in changed:
        log.write(f"{'delete' if gone else 'begin'} {entity} {version} {now()}\n")
    db.execute("BEGIN IMMEDIATE")
    for sql, *args in statements:
        db.execute(sql, [version if a is VERSION else a for a in args])
    db.execute("COMMIT")
    for entity, _ in changed:
        log.write(f"ack {entity} {version} {now()}\n")


VERSION = object()
INSERT_ROOT = "INSERT INTO root(id, gid, version, code) VALUES (?, ?, ?, ?)"


def both(db):  # root and kids in one transaction: a torn answer would show
    k = rng.randint(1, 10)
    two = [("UPDATE root SET version = ? WHERE id = ?", VERSION, k),
           ("UPDATE kid SET version = ? WHERE root_id = ? AND slot IS NULL", VERSION, k)]
    rng.shuffle(two)
    transaction(db, [(f"r{k}", False), (f"k{k}", False)], *two)


def kids(db):
    k = rng.randint(11, 20)
    transaction(db, [(f"k{k}", False)],
                ("UPDATE kid SET version = ? WHERE root_id = ? AND slot IS NULL", VERSION, k))


def upsert(db):
    k = rng.randint(21, 25)
    transaction(db, [(f"r{k}", False)],
                (INSERT_ROOT + " ON CONFLICT(id) DO UPDATE SET version = excluded.version", k, k % 5, VERSION, f"c{k}"))


def replace(db):
    k = rng.randint(26, 30)
    transaction(db, [(f"r{k}", False)], (INSERT_ROOT.replace("INSERT", "INSERT OR REPLACE"), k, k % 5, VERSION, f"c{k}"))


def steal_code(db):  # the row of the other root goes without a DELETE
    k = rng.choice([31, 33, 35])
    there = db.execute("SELECT id FROM root WHERE code = ?", [f"c{k}"]).fetchone()[0]
    to = k if there != k else k + 1
    transaction(db, [(f"r{there}", True), (f"r{to}", False)],
                (INSERT_ROOT.replace("INSERT", "INSERT OR REPLACE"), to, k % 5, VERSION, f"c{k}"))


def steal_slot(db):
    slot = rng.randint(1, 4)
    there = db.execute("SELECT root_id FROM kid WHERE slot = ?", [slot]).fetchone()[0]
    to = rng.choice([k for k in range(37, 41) if k != there])
    transaction(db, [(f"s{slot}@{there}", True), (f"s{slot}@{to}", False)],
                ("INSERT OR REPLACE INTO kid(root_id, slot, version) VALUES (?, ?, ?)", to, slot, VERSION))


def cascade(db):
    k = rng.randint(41, 44)
    if db.execute("SELECT 1 FROM root WHERE id = ?", [k]).fetchone():
        transaction(db, [(f"r{k}", True), (f"k{k}", True)], ("DELETE FROM root WHERE id = ?", k))
    else:
        transaction(db, [(f"r{k}", False), (f"k{k}", False)],
                    (INSERT_ROOT, k, k % 5, VERSION, f"c{k}"),
                    ("INSERT INTO kid(root_id, version) VALUES (?, ?)", k, VERSION),
                    ("INSERT INTO kid(root_id, version) VALUES (?, ?)", k, VERSION))


def cascade_group(db):  # group 9 has the roots 45 to 47 and nothing else
    entities = [e + str(k) for k in (45, 46, 47) for e in "rk"]
    if db.execute("SELECT 1 FROM grp WHERE gid = 9").fetchone():
        transaction(db, [(e, True) for e in entities], ("DELETE FROM grp WHERE gid = 9",))
    else:
        transaction(db, [(e, False) for e in entities], ("INSERT INTO grp VALUES (9, 'nine')",),
                    *[(INSERT_ROOT, k, 9, VERSION, f"c{k}") for k in (45, 46, 47)],
                    *[("INSERT INTO kid(root_id, version) VALUES (?, ?)", k, VERSION) for k in (45, 46, 47)])


def move(db):
    k = rng.randint(48, 50)
    there = db.execute("SELECT gid FROM root WHERE id = ?", [k]).fetchone()[0]
    to = rng.choice([g for g in range(5) if g != there])
    transaction(db, [(f"m{k}@{there}", True), (f"m{k}@{to}", False)],
                ("UPDATE root SET gid = ?, version = ? WHERE id = ?", to, VERSION, k))


def replace_file(db):
    """A copy with one more change takes the place of the file."""
    fresh = path + ".new"
    copy = sqlite3.connect(fresh, isolation_level=None)
    db.backup(copy)
    db.close()
    k = rng.randint(1, 10)
    version = now()
    entities = [f"r{k}", f"k{k}"]
    for e in entities:
        log.write(f"begin {e} {version} {now()}\n")
    copy.execute("BEGIN")
    copy.execute("UPDATE root SET version = ? WHERE id = ?", [version, k])
    copy.execute("UPDATE kid SET version = ? WHERE root_id = ? AND slot IS NULL", [version, k])
    copy.execute("COMMIT")
    copy.close()
    os.rename(fresh, path)
    for e in entities:
        log.write(f"ack {e} {version} {now()}\n")
    return connect(path)


def main():
    db = connect(path)
    every = float(replace_every)
    next_replace = time.monotonic() + every
    while True:
        rng.choice([both, kids, upsert, replace, steal_code, steal_slot, cascade, cascade_group, move])(db)
        if every and time.monotonic() > next_replace:
            db = replace_file(db)
            next_replace = time.monotonic() + every
        time.sleep(rng.random() ** 3 * 0.01)


main()
