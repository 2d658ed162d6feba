// Package sqlite is the origin over one SQLite file: it loads documents, and it
// observes every change that other programs make to the file.
//
// # How a change becomes known
//
// SQLite does not report its changes to other processes. So [Origin.Apply] creates
// triggers on every table of a resource's tree, which append the keys of the
// documents concerned to a table, slipstream_change, in the writer's own
// transaction. SQLite has one writer at a time, and ids of that table are never
// reused: the order of ids is the order of commits, and the highest id that a read
// transaction sees determines exactly which changes it sees. That id is the token
// of a load, read in the load's own transaction.
//
// A document is a root row and the rows below it. A statement changes one row of one table at a
// time. The AFTER trigger of that row looks up the root of its old and of its new form along the
// declared path, which consists of other tables and therefore is the same before and after; no
// table may be on a path twice. If the path is interrupted because a row above was deleted in the
// same statement, that row's own trigger has recorded the root. Rows that REPLACE deletes fire no
// DELETE trigger; BEFORE triggers find and record their roots through the unique indexes. Lookups
// compare column with column as the load does; where NEW.x would lose the affinity that x has in
// the join, the condition is widened (trigger.go).
//
// # Why nothing older than X is served
//
// [Stream.Run] polls. A poll reads the clock first, then checks whether the path
// still leads to the open file, then reads changes in its own transactions, applies
// them, and when none is left moves the horizon to the time that it read first. A
// commit that was acknowledged before that time was visible to those transactions,
// so it has been applied. An idle poll stops at PRAGMA data_version: the same
// number in a transaction that began after the clock was read means that no other
// connection has committed.
//
// History can break. The stream remembers the last row it has read with the
// random nonce in it; another nonce there, or no such row, means a restored
// backup or rows trimmed unread, and voids everything, as does another file at
// the path. A load repeats the check of the file and not that of the history.
// What it read from a lost history is dropped by the void, which the stream declares
// before its next horizon. But a file can be moved away and back between two polls,
// and then there is no void: so a load only uses the file that the stream has open,
// otherwise it waits for at most two polls and then fails as unavailable (loadAll
// explains why one check, at any time in the load, is enough). Every change of the
// schema, including a restore through SQLite's backup interface, changes PRAGMA
// schema_version: then the stream checks tables and triggers again, flushes, and
// withdraws the promise of a resource whose triggers are not exactly the expected
// ones. A load compares the same number in its own transaction, so documents always
// have the shape of their snapshot.
//
// # Polls
//
// The stream polls every 100 ms. It compares stat of the path with the open file
// and reads PRAGMA data_version; if that is unchanged, the poll ends, after 5 to
// 11 us. Otherwise it reads the schema version, the lineage, and the new rows in
// pages of 10,000. A row is (resource, key, nonce): Stream.readChanges turns its
// literals into the canonical ID, and a key that cannot be read flushes the
// resource. The time from a commit to the fresh document is half a poll interval
// and the poll: the freshness test measured a p50 of 29 ms and a maximum of 101
// ms.
//
// slipstream db plan prints the triggers, apply creates them, and check compares
// them byte by byte.
//
// # What it cannot see
//
//   - a writer that switches triggers off (SQLITE_DBCONFIG_ENABLE_TRIGGER), or
//     writes into a BLOB in place (sqlite3_blob_write), which fires none;
//   - a file that is overwritten in place by something that is not SQLite (cp);
//   - a build of SQLite with more than one concurrent writer (BEGIN CONCURRENT).
//
// # Locks
//
// Origin.mu is held only briefly, and never while SQLite works. A connection belongs to one
// goroutine at a time, the stream's to Run.
//
// # Files
//
// inspect.go, tree.go, trigger.go and ddl.go lead from a declaration to triggers; conn.go, load.go
// and json.go load documents; stream.go, tracker.go, change.go and resume.go follow the changes.
package sqlite
