package rpc

import "time"

// A server that answers in order is usually idle between two calls of a connection, while the reply and the next
// call travel. Calls that are sent before their predecessor was answered save that, and share system calls. But they wait
// for their predecessors: if one takes long, all of them do. So a connection has several calls at such a server
// only as long as the server needs little time for them all.
const (
	// depthBudget is how long the calls at a serial server may take together.
	depthBudget = 500 * time.Microsecond
	// depthAlarm is the interval between replies that makes the depth fall immediately.
	depthAlarm = 10 * time.Millisecond
	// mostDepth bounds the calls at a serial server on a connection.
	mostDepth = 64
	// depthReplies is how many replies, for each call that may be at the server, precede a rise.
	depthReplies = 16
	// The pause after a fall, in which the depth does not rise. It doubles with each fall, and starts over
	// after depthForgiven without one.
	firstDepthPause = time.Second
	mostDepthPause  = time.Minute
	depthForgiven   = 2 * mostDepthPause
)

// depth is how many calls a serial server may have on a connection. The zero value is a depth of 1.
type depth struct {
	fixed    int           // by the user; 0 if there is none
	more     int           // the depth, less 1
	replies  int           // since the last change
	interval time.Duration // mean of the time between replies
	fell     time.Time     // the last fall
	pause    time.Duration // after it
}

// limit returns the depth.
func (d *depth) limit() int {
	if d.fixed > 0 {
		return d.fixed
	}
	return 1 + d.more
}

// replied notes n replies that came took after those before them or, if the server had no calls, after the first of
// their calls.
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
	case d.more > 0 && d.needs(1+d.more) > depthBudget: // more connections, or more work at the server
		d.more, d.replies = (1+d.more)/2-1, 0
	case d.mayRise(now) && d.replies >= depthReplies*(1+d.more):
		d.more, d.replies = min(2*(1+d.more), mostDepth)-1, 0
	}
}

// needs returns how long the server needs for n calls.
func (d *depth) needs(n int) time.Duration { return time.Duration(n) * d.interval }

// batch returns how many of the replies to the calls that the server has are awaited together: half of them, if the
// first of these waits only for as long as half of depthBudget.
func (d *depth) batch(calls int) int {
	if n := calls / 2; calls >= leastBatch && d.needs(n) <= depthBudget/2 {
		return n
	}
	return 1
}

// fall makes the depth 1.
func (d *depth) fall(now time.Time) {
	if now.Sub(d.fell) > depthForgiven {
		d.pause = 0
	}
	d.pause = min(max(2*d.pause, firstDepthPause), mostDepthPause)
	d.fell, d.replies, d.interval, d.more = now, 0, 0, 0
}

// mayRise reports whether the depth will rise if the server continues as it does.
func (d *depth) mayRise(now time.Time) bool {
	return d.fixed == 0 && 1+d.more < mostDepth && d.needs(2*(1+d.more)) <= depthBudget && now.Sub(d.fell) >= d.pause
}
