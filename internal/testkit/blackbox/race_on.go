//go:build race

package blackbox

// Race says that the tests run under the race detector; in that case, the command is built with it,
// too.
const Race = true
