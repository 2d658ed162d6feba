package idl

// Errorf returns an error at a position of the file, with its line. It is meant for programs that
// check more than Load does. It must not be called for the same file by several goroutines at once.
func (f *File) Errorf(pos Pos, format string, args ...any) *Error {
	return newError(f, pos, sprintf(format, args))
}
