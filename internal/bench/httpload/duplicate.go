package httpload

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// HTTP/1.1 matches responses with requests by their order, so after a duplicate every request gets
// the response to the previous one. A duplicate is detected if it arrives together with the
// preceding response. Otherwise it is detected at the start or the end of the window, when no
// request is in flight: the connection then has one response too many.

// duplicateAnswer is the error of a request whose response was followed by n bytes.
func duplicateAnswer(n int) error {
	return load.WithKind("duplicate answer", fmt.Errorf("%d surplus bytes after a response", n))
}

// waitingLimit bounds the time for the rest of a TLS record of which a part has arrived.
const waitingLimit = 50 * time.Millisecond

// Surplus returns the number of bytes that were read after the last response. They belong to no
// request.
func (c *Conn) Surplus() int { return c.have - c.used }

// Waiting returns the first bytes that have arrived since the last response was read, up to the
// length of into. They belong to no request if none is in flight. The deadline of a TLS connection
// is removed.
func (c *Conn) Waiting(into []byte) []byte {
	below := c.conn
	secure, _ := below.(*tls.Conn)
	if secure != nil {
		below = secure.NetConn()
	}
	sys, ok := below.(syscall.Conn)
	if !ok {
		return nil
	}
	n := peek(sys, into)
	if n > 0 && secure != nil { // it may be only the notification that the server closes the connection
		_ = secure.SetDeadline(time.Now().Add(waitingLimit))
		n, _ = secure.Read(into)
		_ = secure.SetDeadline(time.Time{})
	}
	return into[:n]
}

// isNotice reports whether the start of a response has the status 408, with which servers announce
// that they close an idle connection (RFC 9110, section 15.5.9). It answers no request, and is not
// a duplicate.
func isNotice(start []byte) bool {
	const version = len("HTTP/1.1")
	return bytes.HasPrefix(start, []byte("HTTP/1.")) && len(start) > version && bytes.HasPrefix(start[version:], []byte(" 408"))
}

// checkIdle counts a duplicate that has arrived at the connection, and then closes the connection.
// No request may be in flight.
func (c *caller) checkIdle() {
	if !c.open {
		return
	}
	var first [16]byte
	waiting := c.conn.Waiting(first[:])
	c.armed = time.Time{}
	if len(waiting) == 0 {
		return
	}
	if !isNotice(waiting) {
		c.counts.duplicates++
	}
	c.hangUp()
}
