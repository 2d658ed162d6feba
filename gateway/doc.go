// Package gateway puts the parts together: a configuration becomes an origin, a
// cache with its tiers, frontends and the admin listener. The command serves with
// it, and programs can embed it.
//
// The way of a request through the rooms of this folder:
//
//	frontend/http  bytes become a key, documents become answers
//	frontend/resp  the same for Redis clients
//	../cache       finds the document fresh enough, or gathers loads
//	tier/memory    keeps documents
//	origin/sqlite  loads documents, and tells of every change
//
// requestlog writes a line for each of them. resource says what a document is;
// config reads the declaration; admin is for operators; demo makes a database to
// look at.
package gateway
