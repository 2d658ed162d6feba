// Package faultproxy is a TCP proxy that misbehaves on demand: it sits between a
// client and a real server and delays, chops, throttles, stalls, swallows, cuts or
// resets the traffic. It knows no protocol.
//
// Faults come in two ways. A [Plan], chosen when a connection is accepted, says
// what happens at which byte of that connection; together with a seed it makes
// a run repeatable. Methods of [Proxy] act on all connections now: Stall,
// Resume, Cut, Reset, Refuse.
package faultproxy
