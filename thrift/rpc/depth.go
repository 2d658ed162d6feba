package rpc

import "time"

// A server that answers in order is usually idle between two calls of a connection, while the reply and the next call
// are on the network. Sending calls before the previous one has been answered avoids that, and shares system calls. But
// each call waits for the calls before it: if one takes long, all of them do. So a connection has several calls in
// flight only as long as the server needs little time for all of them.
const (
	// depthBudget is the time that a serial server may need for all calls in flight on a connection.
	depthBudget = 500 * time.Microsecond
	// depthAlarm is the interval between replies that makes the depth fall immediately.
	depthAlarm = 10 * time.Millisecond
	// mostDepth is the maximum number of calls in flight on a connection to a serial server.
	mostDepth = 64
	// depthReplies times the depth is the number of replies that precede an increase of the depth.
	depthReplies = 16
	// After a fall, the depth does not rise during a pause. The pause doubles with each fall, and is reset after
	// depthForgiven without one.
	firstDepthPause = time.Second
	mostDepthPause  = time.Minute
	depthForgiven   = 2 * mostDepthPause
)

// depth determines how many calls may be in flight on a connection to a serial server. The zero value is a depth of 1.
type depth struct {
	fixed    int           // depth set by the user; 0 if none
	more     int           // the depth minus 1
	replies  int           // since the last change
	interval time.Duration // mean time between replies
	fell     time.Time     // time of the last fall
	pause    time.Duration // after the last fall
}

// limit returns the depth.
func (d *depth) limit() int {
	if d.fixed > 0 {
		return d.fixed
	}
	return 1 + d.more
}

// replied records n replies. took is the time since the previous replies or, if no calls were in flight then, since the
// first of their calls.
func (d *depth) replied(n int, took time.Duration, now time.Time) {
	each := took / time.Duration(n)
	if d.interval == 0 {
		d.interval = each
	}
	d.interval += (each - d.interval) / 8
	if d.fixed > 0 {
		return
	}
	d.replies += n
	switch {
	case took >= depthAlarm:
		d.fall(now)
	case d.more > 0 && d.needs(1+d.more) > depthBudget: // the server has more connections or more work
		d.more, d.replies = (1+d.more)/2-1, 0
	case d.mayRise(now) && d.replies >= depthReplies*(1+d.more):
		d.more, d.replies = min(2*(1+d.more), mostDepth)-1, 0
	}
}

// needs returns the time that the server needs for n calls.
func (d *depth) needs(n int) time.Duration { return time.Duration(n) * d.interval }

// batch returns how many replies to wait for while the given number of calls are in flight: half of them, if the first
// one then waits for at most half of depthBudget.
func (d *depth) batch(calls int) int {
	if n := calls / 2; calls >= leastBatch && d.needs(n) <= depthBudget/2 {
		return n
	}
	return 1
}

// fall resets the depth to 1.
func (d *depth) fall(now time.Time) {
	if now.Sub(d.fell) > depthForgiven {
		d.pause = 0
	}
	d.pause = min(max(2*d.pause, firstDepthPause), mostDepthPause)
	d.fell, d.replies, d.interval, d.more = now, 0, 0, 0
}

// mayRise reports whether the depth will rise if the server keeps its pace.
func (d *depth) mayRise(now time.Time) bool {
	return d.fixed == 0 && 1+d.more < mostDepth && d.needs(2*(1+d.more)) <= depthBudget && now.Sub(d.fell) >= d.pause
}
