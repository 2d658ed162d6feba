//go:build !race

package limit

// flood is how many addresses TestFlood sends.
const flood = 10_000_000
