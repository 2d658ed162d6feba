package redis

// KnownReadOnly reports whether the table lets a command be repeated.
func KnownReadOnly(name string, args ...any) bool {
	c := Cmd(name, args...)
	return c.repeatable()
}
