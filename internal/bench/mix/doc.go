// Package mix is several operations over one target, each with a weight.
//
//	file         holds
//	mix.go       Operation, Weights: which operation is next
//	record.go    Recorder: what each operation takes
//	file.go      Load: the workload file
package mix
