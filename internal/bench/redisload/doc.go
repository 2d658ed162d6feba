// Package redisload is the Redis workload of the load generator. It sends requests like any program
// that uses package redis: the callers share one client.
//
//	file        holds
//	target.go   Target: for internal/load
//	caller.go   one caller: single commands and batches
//	command.go  commands with placeholders for keys and values
package redisload
