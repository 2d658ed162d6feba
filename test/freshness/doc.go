// Package freshness contains the tests that write to a database while clients read from the
// gateway: no answer may be older than promised.
package freshness
