package redis

// KnownReadOnly reports whether the table lets a command be repeated.
func KnownReadOnly(name string, args ...any) bool {
	c := Cmd(name, args...)
	return c.repeatable()
}

// KnownToWait reports whether the client gives a command a connection of its own.
func KnownToWait(name string, args ...any) bool {
	c := Cmd(name, args...)
	return c.waits
}
