package rpc

import "time"

// A server without TCP_NODELAY, such as those of Apache Thrift for Python, holds a small reply back until the reply before
// it was acknowledged. The kernel of the client delays that by 40 ms, because the next call could carry the
// acknowledgment; but with several calls at the server there may be none.
//
// While more replies are awaited, they are therefore acknowledged immediately: 64 times on a new connection, and
// always on one where an interval of about 40 ms was seen.
const (
	// ackTrials is the number of times that replies are acknowledged immediately on a new connection, while others are
	// awaited.
	ackTrials = 64
	// An interval between these two, while replies were awaited, is taken for that of a server that waits for an
	// acknowledgment.
	leastAckWait = 30 * time.Millisecond
	mostAckWait  = 100 * time.Millisecond
)

// acks decides whether replies are acknowledged immediately, which costs a system call. The zero value is that of a new
// connection.
type acks struct {
	trials int
	always bool // the server was seen to wait
}

// needed reports whether to acknowledge replies that arrived the duration took after the previous
// ones, while others are still awaited.
func (a *acks) needed(took time.Duration) bool {
	if took >= leastAckWait && took <= mostAckWait {
		a.always = true
	}
	if a.always {
		return true
	}
	a.trials++
	return a.trials <= ackTrials
}
