//go:build !linux

package disk

import (
	"errors"
	"os"
)

// mapping is for walks that must not wait. Which pages are in memory is unknown here, so
// there are no such walks.
type mapping struct{ data []byte }

func newMapping(*os.File, int64) (*mapping, error) { return nil, errors.ErrUnsupported }

func (m *mapping) close() {}

func (m *mapping) near(int, int) bool { return false }
