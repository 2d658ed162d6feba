//go:build !race

package blackbox

// Race says that the tests run under the race detector; the command is built with it
// then, too.
const Race = false
