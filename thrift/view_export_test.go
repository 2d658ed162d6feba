package thrift

// SetMaxChanges sets how many bytes may be set in a view, and returns a function that undoes it.
func SetMaxChanges(n int) (undo func()) {
	old := maxChanges
	maxChanges = n
	return func() { maxChanges = old }
}
