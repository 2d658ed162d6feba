// Package operation holds the tests of the command as operators use it: start, reload,
// hand-over, end.
package operation
