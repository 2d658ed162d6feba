// Package faultproxy is a TCP proxy that misbehaves on demand: it is placed between a client and a
// real server and delays, splits, throttles, stalls, discards, cuts or resets the traffic. It knows
// no protocol.
//
// Faults can be injected in two ways. A [Plan], chosen when a connection is accepted, says what
// happens at which byte of that connection; together with a seed it makes a run repeatable. Methods
// of [Proxy] act immediately on all connections: Stall, Resume, Cut, Reset, Refuse.
package faultproxy
