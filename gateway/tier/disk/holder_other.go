//go:build !linux

package disk

// holder returns the process that holds a lock of the file; it is not known here.
func holder(string) int { return 0 }
