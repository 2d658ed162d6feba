package http1

// Again reports whether b begins with a head that differs from h only in its target, and returns
// its length. Clients that send several requests together repeat all other lines, so that comparing
// them is enough. h must be of a head that was accepted, and the bytes that it points to must not
// have changed.
//
// If it reports true, h is the result of [Scanner.Scan] for b, and the next head begins at b[n]. If
// it reports false, h has not changed, and only Scan can determine what b is. Only heads with the
// method GET are recognized. Again allocates nothing.
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
