package http1

// Again reports whether b starts with a head that differs from h only in its target, and returns
// its length. Clients that pipeline requests repeat all the other lines, so it is enough to compare
// those. h must contain a head that was accepted, and the bytes that it points to must not have
// changed since.
//
// If Again reports true, h is the same as [Scanner.Scan] would return for b, and the next head
// starts at b[n]. If it reports false, h is unchanged, and only Scan can determine what b is. Only
// heads with the method GET are recognized. Again never allocates memory.
func Again(b []byte, limit int, h *Head) (n int, ok bool) {
	if len(h.rest) == 0 || len(b) < len("GET /") || load4(b) != get4 {
		return 0, false
	}
	const target = len("GET ")
	end, ok := scanTarget(b, target)
	n = end + len(h.rest)
	if !ok || n > len(b) || n > limit || string(b[end:n]) != string(h.rest) {
		return 0, false
	}
	h.Target = b[target:end:end]
	return n, true
}
