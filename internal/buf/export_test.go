package buf

// SetChecked switches checked mode on or off, for tests of pools without it.
func SetChecked(on bool) { checked.Store(on) }

// Links returns the number of links that in holds, including those that wait for Release.
func (in *Input) Links() int {
	n := len(in.more) + len(in.used)
	if in.head != nil {
		n++
	}
	return n
}
