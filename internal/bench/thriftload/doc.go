// Package thriftload is the Thrift workload of the load generator. Its calls travel as those
// of any program that uses package rpc: the callers share one client. No code is generated for
// the functions: arguments are made of JSON by the IDL, or are one text.
//
//	file         holds
//	target.go    Target: for internal/load
//	caller.go    one caller
//	function.go  functions, and their arguments
//	message.go   texts as arguments, and what a reply has
package thriftload
