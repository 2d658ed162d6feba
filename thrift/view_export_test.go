package thrift

// SetMaxChanges sets how many bytes may be set in a view, and returns a function that undoes it.
func SetMaxChanges(n int) (undo func()) {
	old := maxChanges
	maxChanges = n
	return func() { maxChanges = old }
}

// SizeOfChanges returns the size of the fields that were set in a view, including values that have
// been replaced since.
func (v *View) SizeOfChanges() int { return len(v.mem[1]) }
