package rpc

import "time"

// A server without TCP_NODELAY, such as Apache Thrift's Python servers, holds back a small reply until the previous
// reply has been acknowledged. The client's kernel delays the acknowledgment by 40 ms, because it could be sent with
// the next call; but while several calls are in flight, there may be no next call.
//
// Therefore, while more replies are expected, replies are acknowledged immediately: the first 64 times on a new
// connection, and always on a connection where an interval of about 40 ms was observed.
const (
	// ackTrials is the number of times that replies are acknowledged immediately on a new connection while others are
	// expected.
	ackTrials = 64
	// An interval between these two, while replies are expected, is taken as a sign that the server waits for an
	// acknowledgment.
	leastAckWait = 30 * time.Millisecond
	mostAckWait  = 100 * time.Millisecond
)

// acks decides whether to acknowledge replies immediately, which costs a system call. The zero value is for a new
// connection.
type acks struct {
	trials int
	always bool // the server has been observed to wait
}

// needed reports whether to acknowledge replies immediately. They arrived the duration took after the previous ones,
// and others are still expected.
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
