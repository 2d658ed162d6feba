// Package tarantoolload is the Tarantool workload of the load generator. It sends requests like any
// program that uses package tarantool: the callers share one client.
//
//	file          holds
//	target.go     Target: for internal/load
//	caller.go     one caller
//	operation.go  operations, and functions with placeholders for keys and values
//	row.go        tuples of a key and a value
package tarantoolload
