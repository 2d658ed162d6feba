package box

// second returns the error from a function with two results.
func second[T any](_ T, err error) error { return err }

// columnsOf reads all columns.
func columnsOf(raw []byte) ([]Column, error) {
	c := ParseColumns(raw)
	var all []Column
	for range c.Len {
		all = append(all, c.Next())
	}
	return all, c.Err()
}
