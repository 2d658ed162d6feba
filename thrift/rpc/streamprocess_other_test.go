//go:build !linux

package rpc_test

func runMeasured() {}
