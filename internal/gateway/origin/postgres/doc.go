// Package postgres loads documents from PostgreSQL, and hears of their changes
// through a table that triggers append to.
//
// # Documents
//
// A resource compiles into one statement that takes arrays of keys and gives
// ready JSON, built in the database, a row a document. The statement's first row
// is its own snapshot (pg_current_snapshot) and the history it was read from
// (see below): READ COMMITTED takes one snapshot a statement, so a document is
// never torn and its token is exact.
//
// # Changes
//
// Statement-level triggers on every table of a document, and on every partition
// of it, append (xid, at, source, key) to slipstream.change in the writer's own
// transaction. source names the resource and the node of its tree; key is what
// the changed row, before and after the change, says about the document that it
// belongs to: the key itself for the root and for children joined by the key, else
// the values of the columns that join the row to its parent. Triggers never look
// at another table. From such a link the stream derives the document's key, in
// the very snapshot in which it reads the change. That is what makes concurrent
// moves of a parent safe: whoever moved a row in between has left a change of its
// own, visible in that snapshot too or else later.
//
// The stream polls: one statement gives its snapshot and every change that is
// visible in it and was not in the snapshot before. Nothing is ever skipped,
// whatever order transactions commit in, and a poll that fails is repeated from the
// same snapshot. The time before the statement was sent becomes the horizon as
// soon as its changes are applied and a digest of the triggers, tables and
// partitions, read after it, is the digest of the schema that the resources were
// compiled against. NOTIFY is only an optional alarm clock for the next poll: it
// makes commits wait for one another (docs/decisions/0005-postgresql-change-table.md).
//
// # Histories
//
// slipstream.incarnation is an unlogged table of one row, a random id. PostgreSQL
// empties unlogged tables whenever it recovers from a crash, is promoted or
// restored: exactly when commits that were seen may be gone. The stream writes a
// new id then and voids the cache. The id and the timeline are a part of every
// load and poll; a load of another history than the stream's is never stored.
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
