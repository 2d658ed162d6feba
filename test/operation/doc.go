// Package operation contains the tests of the command as operators use it: start, reload, handover,
// shutdown.
package operation
