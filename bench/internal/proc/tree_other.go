//go:build !linux

package proc

import "errors"

// Descendants returns an error, because it is implemented only on Linux.
func Descendants(int) ([]int, error) { return nil, errors.ErrUnsupported }
