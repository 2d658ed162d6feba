// Package redisload is the Redis workload of the load generator. Its requests
// travel as those of any program that uses package redis: the callers share one
// client.
//
//	file        holds
//	target.go   Target: for internal/load
//	caller.go   one caller: single commands and batches
//	command.go  commands with places for keys and values
package redisload
