//go:build !unix

package main

// limitAddressSpace does nothing here.
func limitAddressSpace(uint64) {}
