package loop

import "crypto/tls"

// A Session is a protocol's side of one connection. The engine calls the methods of a
// session one at a time. They must not block, because other connections wait for them. A
// panic ends the connection and is logged.
type Session interface {
	// Data receives all bytes that were read and not consumed, at least one, and returns how many
	// at their front it has consumed. The bytes are valid only during the call and must not be
	// changed. Data is called again, with the bytes that are left and those that followed, when
	// more bytes have arrived or, if it stopped because of [Conn.Full], as soon as there is room.
	//
	// A session consumes whole requests while it is not [Conn.Full]. If it leaves bytes without
	// being full, they must be the start of a request.
	Data(c *Conn, in []byte) (consumed int)
	// Closed is the last call: the connection has ended or was detached. If it ended in
	// order, err is nil; otherwise it is a [*CloseError].
	Closed(c *Conn, err error)
}

// A Reply is an answer that is given later: see [Conn.Defer]. Exactly one of its methods is
// called, once.
type Reply interface {
	// Write appends the answer to [Conn.Output]. It is called like a session's methods,
	// after the answer is complete and earlier answers have been appended.
	Write(c *Conn)
	// Drop is called instead if the connection has ended. It may be called on any
	// goroutine.
	Drop()
}

// A SecureSession is a session that receives the result of a TLS handshake.
type SecureSession interface {
	Session
	// Secured is called once, in a turn, after the handshake and before Data.
	Secured(c *Conn, state tls.ConnectionState)
}

// An EndWatcher is a session that is informed when the peer sends nothing more, although it owes answers to it.
type EndWatcher interface {
	Session
	// PeerEnded is called once, in a turn, when the peer has ended its sending side, all that it has sent was passed to
	// Data, and answers are owed. The connection is closed once they are written.
	PeerEnded(c *Conn)
}

// A Drainer is a session that says goodbye when the server shuts down.
type Drainer interface {
	Session
	// Drain is called once, in a turn, soon after the server has begun to drain; if the
	// connection is accepted or finishes its handshake later, soon after that. The
	// session may append to [Conn.Output] and may call [Conn.End]. If it does not call End, the
	// connection is half-closed like others: once it is idle and Config.DrainGrace has passed.
	Drain(c *Conn)
}

// A LargeHolder is a session that holds large answers which it has not yet passed to its connection
// because they wait for earlier answers. See [Server.HoldLarge].
type LargeHolder interface {
	Session
	// HoldsLarge returns the number of bytes of these answers. It may be called on any
	// goroutine.
	HoldsLarge() int64
}

// CloseReason is the reason why a connection ended.
type CloseReason uint8

// Reasons.
const (
	ReasonEnd          CloseReason = iota // in order: the peer closed, or the session ended it
	ReasonDetached                        // it left the engine
	ReasonIdle                            // no request for IdleTimeout
	ReasonPartial                         // the rest of a request did not come within PartialTimeout
	ReasonStalled                         // the peer did not read
	ReasonTooLarge                        // a request of more than MaxInput bytes
	ReasonDrained                         // the server shut down
	ReasonReset                           // the network failed, or the peer reset it
	ReasonAborted                         // the session aborted it, or panicked
	ReasonUnproven                        // no request or login was completed within ProveTimeout
	ReasonMemory                          // the budget was exceeded, and its address held the most
	ReasonAddress                         // its address had MaxPerAddress connections
	ReasonUnprovenRoom                    // made room: no request or login was completed yet
	ReasonAddressRoom                     // made room: idle, and its address had the most connections
	ReasonIdleRoom                        // made room: idle for the longest time
	ReasonLarge                           // the budget of large answers was exceeded, and its address owed the most
	ReasonCrowdRoom                       // made room: in use, none was idle, and its address had the most connections

	// CloseReasons is the number of reasons.
	CloseReasons
)

// String returns the name of the reason in metrics and logs.
func (r CloseReason) String() string {
	return [...]string{"end", "detached", "idle", "partial", "stalled", "too-large", "drained", "reset", "aborted",
		"unproven", "memory", "address", "room-unproven", "room-address", "room-idle", "large", "room-crowd"}[r]
}

// CloseError reports why a connection ended.
type CloseError struct {
	Reason CloseReason
	Err    error // of the network, or the one passed to Abort; may be nil
}

// Error implements error.
func (e *CloseError) Error() string {
	text := "loop: " + [...]string{
		ReasonEnd:      "the connection ended",
		ReasonDetached: "the connection was detached",
		ReasonIdle:     "the connection was idle for too long",
		ReasonPartial:  "timed out waiting for the rest of a request",
		ReasonStalled:  "the peer does not read its answers",
		ReasonTooLarge: "a request is too large",
		ReasonDrained:  "the server is shutting down",
		ReasonReset:    "the connection failed",
		ReasonAborted:  "the connection was aborted",

		ReasonUnproven:     "no request or login was completed in time",
		ReasonMemory:       "connections hold too much memory, and this address holds the most",
		ReasonAddress:      "the address has too many connections",
		ReasonUnprovenRoom: "closed to make room for a new connection: no request or login was completed yet",
		ReasonAddressRoom:  "closed to make room for a new connection: idle, and its address has the most connections",
		ReasonIdleRoom:     "closed to make room for a new connection: idle for the longest time",
		ReasonLarge:        "too many bytes of large answers are unsent, and this address has the most of them",
		ReasonCrowdRoom:    "closed to make room for a new connection: none is idle, and its address has the most connections",
	}[e.Reason]
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns e.Err.
func (e *CloseError) Unwrap() error { return e.Err }

// Is reports whether target is a CloseError with the same reason and no underlying error.
func (e *CloseError) Is(target error) bool {
	t, ok := target.(*CloseError)
	return ok && t.Reason == e.Reason && t.Err == nil
}

// Errors with which connections end, for use with errors.Is.
var (
	ErrIdle     = &CloseError{Reason: ReasonIdle}
	ErrPartial  = &CloseError{Reason: ReasonPartial}
	ErrStalled  = &CloseError{Reason: ReasonStalled}
	ErrTooLarge = &CloseError{Reason: ReasonTooLarge}
	ErrDrained  = &CloseError{Reason: ReasonDrained}
	ErrReset    = &CloseError{Reason: ReasonReset}
	ErrUnproven = &CloseError{Reason: ReasonUnproven}
	ErrMemory   = &CloseError{Reason: ReasonMemory}
	ErrLarge    = &CloseError{Reason: ReasonLarge}
)
