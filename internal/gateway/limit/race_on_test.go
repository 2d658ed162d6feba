//go:build race

package limit

// flood is how many addresses TestFlood sends: each costs ten times as much here.
const flood = 1_000_000
