// Package blackbox builds the command slipstream once for all tests of a package and runs it as
// users do: through its arguments, its files and its ports.
//
//	file         gives
//	program.go   Main, Program: the command; Run, Expect: a run of it, to its end
//	serve.go     configurations, and the readiness of the gateway
//	shop.go      Shop: a gateway over a small PostgreSQL schema
package blackbox
