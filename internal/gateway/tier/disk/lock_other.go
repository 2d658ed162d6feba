//go:build !unix || solaris || aix

package disk

import "os"

// lock does nothing: bbolt locks the file when it has it. A file that another process has open
// cannot be removed there.
func lock(*os.File, bool) error { return nil }
