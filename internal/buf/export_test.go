package buf

// SetChecked switches checked mode on or off, for tests of pools without it.
func SetChecked(on bool) { checked.Store(on) }

// Links returns how many links in holds, those included that wait for Release.
func (in *Input) Links() int {
	n := len(in.more) + len(in.used)
	if in.head != nil {
		n++
	}
	return n
}
