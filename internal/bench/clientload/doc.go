// Package clientload contains what the workloads of this module's clients have in common.
//
//	file       holds
//	keys.go    Keys: which keys are used
//	value.go   values that identify the key to which they belong
//	ledger.go  Ledger: which values of a key are too old to be read
//	tally.go   Tally: counts of replies
//	failed.go  kinds of errors of clients
package clientload
