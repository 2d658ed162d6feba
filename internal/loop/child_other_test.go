//go:build !unix

package loop_test

func runChild() {}
