package driver

import (
	"fmt"
	"net"
	"time"
)

// A Check reports wrong options of a driver. Its errors start with the name of the driver.
type Check string

// Addr checks the address of a server.
func (c Check) Addr(addr string) error {
	if Network(addr) == "unix" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	switch {
	case err != nil || port == "":
		return fmt.Errorf("%s: address %q, expected host:port or the path of a Unix socket", c, addr)
	case host == "":
		return fmt.Errorf("%s: address %q has no host, expected host:port", c, addr)
	}
	return nil
}

// A Number is a numeric option from 0, which means the default, to Max.
type Number struct {
	Name       string
	Value, Max int
}

// Numbers checks options that are numbers.
func (c Check) Numbers(numbers ...Number) error {
	for _, n := range numbers {
		if n.Value < 0 || n.Value > n.Max {
			return fmt.Errorf("%s: %s %d, expected 0 (the default) to %d", c, n.Name, n.Value, n.Max)
		}
	}
	return nil
}

// A Duration is an option that must not be negative.
type Duration struct {
	Name  string
	Value time.Duration
}

// Durations checks options that are durations.
func (c Check) Durations(durations ...Duration) error {
	for _, d := range durations {
		if d.Value < 0 {
			return fmt.Errorf("%s: %s %v is negative", c, d.Name, d.Value)
		}
	}
	return nil
}
