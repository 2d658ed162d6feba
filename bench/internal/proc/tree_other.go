//go:build !linux

package proc

import "errors"

// Descendants returns an error: it reads what only Linux tells.
func Descendants(int) ([]int, error) { return nil, errors.ErrUnsupported }
