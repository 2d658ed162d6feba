// Package mix describes workloads of several operations on one target, each with a weight.
//
//	file         holds
//	mix.go       Operation, Weights: which operation is next
//	record.go    Recorder: the latency and errors of each operation
//	file.go      Load: the workload file
package mix
