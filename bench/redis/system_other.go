//go:build !unix

package main

import "errors"

// limitAddressSpace does nothing on this system.
func limitAddressSpace(uint64) {}

func pause(int) error { return errors.ErrUnsupported }

func resume(int) error { return errors.ErrUnsupported }
