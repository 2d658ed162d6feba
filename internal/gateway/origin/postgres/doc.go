// Package postgres loads documents from PostgreSQL, and follows their changes
// through a table that triggers append to.
//
// # Documents
//
// A resource compiles into one statement that has arrays of keys as parameters and returns JSON
// that is built in the database, one row for each document. A second statement is for a single key,
// without the array of keys and the join (loadOneStatement). The first row of a statement is its
// own snapshot (pg_current_snapshot) and the history that it was read from: READ COMMITTED takes
// one snapshot for each statement, so a document is never torn and its token is exact.
//
// # Objects
//
// slipstream.change(xid, at, source, key) is append-only. slipstream.meta has one row: the floor
// from which the table is complete, and the cluster that it belongs to. slipstream.incarnation is
// an unlogged table of one row with a random id. For each resource and table there are a function
// and four statement-level triggers (insert, update, delete, truncate), on the table and on every
// partition and inheriting table, ENABLE ALWAYS.
//
// A group is a resource and a table. It has a hash over the recorded columns with their key types,
// the sources, the way to the document's key, and the version of the body's format. The hash is in
// the names of functions and triggers, and a hash for each source is in the names in the change
// table (depts/emps@3f2a…). It covers no text of SQL, which differs between roles and releases. So
// a row is never read with the meaning of another definition, Apply only adds, and the triggers of a
// new definition are new triggers, for which CREATE TRIGGER waits for open writers. If the body of a
// function differs under the same name, it was tampered with: its triggers are recreated, which waits
// as well. The digest has a row for each trigger by name, and a resource depends only on its own: what
// another definition applies or prunes flushes nothing. Rows that flush (key NULL) carry a hashed
// source, too. A recorded text that no trigger of the definition writes flushes the resource.
//
// No migration may fail the writers of a table (docs/decisions/0015-trigger-bodies.md). A body
// names its columns unqualified, inside of a row that has a text in place of each: SQL takes the
// innermost, so a column that was renamed or dropped is read as that text, and recorded as a change
// of all documents. The body converts columns to text by functions that accept every type
// (keyType.anyText), before it compares. It has no EXCEPTION clause, which would start a
// subtransaction for each statement.
//
// A body converts columns to text, and ::text obeys CREATE CAST, so the owner of a table can run
// code as the owner of the function. Trigger functions therefore belong to the definer, which may
// only insert into the change table; the schema's owner has the tables, renew and trim. The promise
// does not depend on owners: Check, a metric and the log report a wrong one.
//
// # The life of a change
//
//  1. A statement of a writer changes rows. Its trigger appends, in the writer's transaction, one
//     row for each distinct link among the rows as they were and as they are: the key of the
//     document for the root and for children joined by it, else the columns that join the row to
//     its parent. More than 10,000 in one statement, or TRUNCATE, are one row for all documents.
//     The trigger reads no table.
//  2. Every 25 ms the stream sends one statement (changesStatement): the snapshot, the history, the
//     floor, and every row that is visible now and was not in last, the snapshot of the previous
//     poll. It reads no table of users, and no row of a transaction that is still in progress: such
//     a transaction may have written millions, which every gateway would visit forty times a
//     second. Of the transactions in progress in last it reads those that have ended, and from
//     last.xmax on the gaps between those in progress now. If there are more than 200,000 rows, the
//     resources that they concern are flushed.
//  3. If rows have links to derive, the stream reads the changes in a REPEATABLE READ transaction
//     and executes the derivations of each resource in it, in the snapshot that showed the change
//     (derive.go). A derivation reads tables of users and runs their code. So each resource has a
//     savepoint, a time limit (X/8, X/4 for all), and does not wait for locks until the others are
//     done. If a derivation fails, is locked out or is not reached, only its own resource loses the
//     promise, and so all documents, for a pause of 0.25 to 30 s; the horizon of the others moves
//     on. Without links a poll is one round trip; with links it is two, and one more for each
//     resource.
//  4. Cache.Apply sets the tombstone, detaches running loads, and drops the document from each tier
//     if its token misses the transaction.
//  5. Every 100 ms the digest statement follows in the same round trip: triggers, tables, columns,
//     partitions, policies and the functions that they call, views, functions, types, casts, and
//     what a new session would start with. If all digests are those of the schema in use,
//     Cache.Advance moves the horizon to the time before the first of the two statements was sent.
//     The survey finds the types and functions (shaping.go): from the columns, expressions and
//     results of a resource it continues to what domains, arrays, composite types and ranges are made
//     of. A type that is new among them arrives with a change of a row that is watched already.
//     Sessions keep the settings, casts and policies that they were started with, so a digest that
//     differs also replaces the connections of the stream and of loads, before the flush.
//  6. If a digest differs, or after a lost connection or an error, a survey (survey.go) reads
//     catalogs and history in one REPEATABLE READ snapshot, compiles the resources again, flushes
//     those whose digest changed, and determines which promises hold. A resource whose digest is
//     still that of the schema in use is not compiled again; one whose tables are locked has no
//     promise until they are not. The survey does not move the horizon. A poll with a check follows
//     immediately, which reads what changed since last. If all digests are those of the survey, it
//     moves the horizon as in step 5. Otherwise it flushes the resources that have changed since
//     and moves the horizon to the start of the survey, so that a table that is truncated all the
//     time does not hold back other resources.
//
// NOTIFY is optional. It makes commits wait for one another
// (docs/decisions/0005-postgresql-change-table.md).
//
// # Why the promise holds
//
// Let c be the moment at which a commit was acknowledged, and g a GET with g > c + X. The numbers
// of the first five rules are those of package cache.
//
//  1. Token. The first row of a load is pg_current_snapshot() of the statement itself. The document
//     is stored only if every known invalidating transaction of its key is visible in that
//     snapshot, whatever order they committed in.
//  2. Horizon. It is read before the tier and is at least g - X > c. It was set to a time t > c
//     before a statement was sent, whose snapshot therefore sees the commit: PostgreSQL
//     acknowledges a commit after it has removed the transaction from the list of running ones. So
//     that poll, or an earlier one, returned the change, and it had been applied when the horizon
//     moved. No row is skipped: a row that is visible now and was not in last has an xid that was
//     running in last or not yet assigned. No row is lost with a poll: a poll that fails leaves
//     last as it was.
//  3. The triggers were there. The digest read after the changes is the one read before them, and
//     each ALTER leaves another xmin in the catalogs, even if it was undone: so nothing was
//     switched off in between. A transaction that wrote before a trigger was created is over when
//     the trigger is visible, because CREATE TRIGGER waits for it. Rows that appear without a
//     trigger (ATTACH of a filled partition, ALTER ... TYPE ... USING) change the digest, too: the
//     resource is flushed.
//  4. Joining is the rule of package cache. With several hosts a load counts as begun half a
//     promise earlier (Config.LoadLag): it may read a server that stopped being the primary that
//     long ago without the stream having noticed (see History).
//  5. The gap. After any interruption, the poll that follows the survey reads the rows since last.
//     If the floor has passed last.xmin, rows may have been trimmed unread: everything is flushed.
//     Trimming moves the floor in its own transaction, so a reader that sees rows gone sees the
//     floor. It deletes with DELETE, never with TRUNCATE or DROP: a reader with an older snapshot
//     still sees every row that its floor vouches for. Whether a row is trimmed for its age or for
//     lack of room (keep_bytes), its transaction is below the snapshot's xmin: a transaction in
//     progress has yet to be read by every stream, so its rows and all later ones stay, however
//     long it takes. The newest transaction below xmin stays with all its rows, and so does what is
//     above; the floor never passes it: the newest row, by (xid, at), is the witness of the
//     history. A trim begins just below the floor and not at the left end of the index, where dead
//     entries are that an old snapshot protects. Rows that a transaction which was open when the
//     record began wrote below the floor are swept later, together with a trim that raises it. The
//     name of trim carries a hash of its body.
//  6. Roots of deeper rows are derived in the snapshot that shows the change. Let a row below o
//     change in T while U moves o from A to B. If the snapshot of the poll sees U, the derivation
//     finds B, and U's own change, visible there too, names A and B. If not, it finds A, and U's
//     change comes with a later poll, before the horizon passes U. By induction over the hops the
//     same holds for any depth, and for U deleting o. A trigger that looked for the root would see
//     neither. The induction needs hops that lead away from the changed table: T and U may be one
//     transaction, which deletes both rows. A via that reads its own table, or several that lead
//     back to it, are refused unless the dependency declares reads_itself (onwards.go). A table
//     that is rewritten or truncated after the snapshot was taken looks empty to it. The check
//     after the transaction takes its own snapshot, finds that the table has changed, and the
//     horizon does not move. A resource that loses its promise because a derivation failed regains
//     it after a poll that followed its changes, if there were any: it has no documents by then,
//     and those that are loaded from then on see all that the poll saw.
//  7. History. Load and poll carry the timeline, the incarnation and the oid of the database. A
//     crash, a promotion or a restore empties the unlogged table; the stream writes a new id, voids
//     the cache and continues from there. The result of a load of another history than the stream's
//     is returned and not stored; one from a lower timeline is refused. Timeline and incarnation
//     survive a clean stop, so the history also has a witness (witness.go): transaction and
//     microsecond of the newest change applied, which each poll looks for in its own statement and
//     the position of the disk tier stores. Trimming never deletes the newest row. A witness
//     missing below the floor means a gap (flush), one missing at or above it another history
//     (void). The origin knows the highest timeline of its system (lineage), from the stream or
//     from the position of a store. A lower one is refused before anything is written there. With
//     several hosts, one goroutine for each checks over an open connection whether the host accepts
//     writes and on which timeline (hostWatcher). The stream follows the highest, and the horizon
//     never passes the last moment at which every other host that answers was asked and did not
//     accept writes on a higher one: a connection can survive when its server stops being the
//     primary. For the same reason a load uses only a connection that is younger than half of the
//     promise, unless the stream has vouched for its server since then.
//  8. Clock. Polls carry the server's clock. If between two polls it advances by more than X/4 more
//     or less than ours did, given when the polls were sent and answered, our clock may have missed
//     a pause of the machine: the horizon is withdrawn (Retract) until the next complete poll.
//  9. Hints. NOTIFY, if it is on, changes when the stream polls, and nothing else.
//
// A resource with promise: none needs none of this: a document is served for X after its load
// began, so it sees all commits before g - X.
//
// # Names
//
// No statement of Slipstream looks up a name along the search path: words.go and path.go have the
// rules, and the exceptions, in which users chose names. The database does not execute the text of
// the user but the text that it wrote back, qualified, with the names of pg_catalog restored that
// pg_get_viewdef omits (qualify.go); a second temporary view shows that it is still the same query.
// NULLIF, IS DISTINCT FROM, CASE x WHEN and JOIN ... USING have no qualified spelling: a load looks
// their operators up along the path of the role. Plan, Check and Apply run with more privileges than
// the gateway, so they only plan (which executes immutable functions) text that the database wrote
// back, under the pinned path. Plan and Check are read-only except for the transaction of the
// temporary views, which is always rolled back.
//
// # Files
//
// From a declaration to its sources: catalog.go, describe.go, tree.go, resolver.go, join.go,
// keytype.go; for statements query.go, depend.go, onwards.go, readby.go, lookup.go, qualify.go, volatility.go and
// placeholder.go. Documents: document.go, statement.go, load.go, connect.go, hosts.go. What is
// created in the database: trigger.go, definition.go, object.go, plan.go, ddl.go, prune.go, with
// inspect.go, owner.go and grant.go. Changes: stream.go, poll.go, derive.go, survey.go, digest.go,
// shaping.go, listen.go, trim.go, retention.go, resume.go. Which server and history is followed:
// hostwatch.go, follow.go, timeline.go, witness.go, drift.go.
package postgres
