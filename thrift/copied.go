package thrift

// Copied returns n if that many bytes are copied into the buffer of a body, and 0 if they are
// linked: how much room the buffer needs for them.
func Copied(n int) int { return n - Linked(n) }
