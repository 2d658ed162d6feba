// Package clientload is what the workloads of the clients of this module have in common.
//
//	file       holds
//	keys.go    Keys: which keys are used
//	value.go   values that say to which key they belong
//	ledger.go  Ledger: which values of a key are too old to be read
//	tally.go   Tally: what the replies were
//	failed.go  kinds of errors of clients
package clientload
