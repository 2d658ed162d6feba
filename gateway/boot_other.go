//go:build !linux

package gateway

// bootID names the run of the machine of which bootTime is the clock; it is not known here.
func bootID() string { return "" }
