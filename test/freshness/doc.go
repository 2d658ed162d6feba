// Package freshness holds the tests that write to a database while others read the
// gateway: no answer may be older than its promise.
package freshness
