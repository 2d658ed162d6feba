// Package thriftload is the Thrift workload of the load generator. It makes calls like any program
// that uses package rpc: the callers share one client. No code is generated for the functions:
// arguments are converted from JSON according to the IDL, or are a single string.
//
//	file         holds
//	target.go    Target: for internal/load
//	caller.go    one caller
//	function.go  functions, and their arguments
//	message.go   strings as arguments, and the results of replies
package thriftload
