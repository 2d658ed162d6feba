//go:build !unix

package rpc_test

func runChild() {}
