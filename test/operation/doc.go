// Package operation holds the tests of the command as operators use it: start, reload,
// handover, end.
package operation
