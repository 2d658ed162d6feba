package loop

import "crypto/tls"

// A Session is a protocol's side of one connection. The engine calls its methods one at
// a time for a connection. They must not wait for anything: other connections wait for
// them. A panic ends the connection and is logged.
type Session interface {
	// Data is given all bytes that were read and not consumed, at least one, and
	// returns how many at their front it has consumed. The bytes are valid during the
	// call only, and nobody may change them. It is called again with what is left and
	// what followed when more has come or, if it stopped because of [Conn.Full], as
	// soon as there is room.
	//
	// A session consumes whole requests while it is not [Conn.Full]. What it leaves
	// without being full is the start of a request.
	Data(c *Conn, in []byte) (consumed int)
	// Closed is the last call: the connection has ended or was detached. err is nil if
	// it ended in order, else a [*CloseError] or what [Conn.Abort] was given.
	Closed(c *Conn, err error)
}

// A Reply is an answer that is given later: see [Conn.Defer]. Of its two methods exactly
// one is called, once.
type Reply interface {
	// Write appends the answer to [Conn.Output]. It is called as a session's methods
	// are, after the answer is complete and those before it have been appended.
	Write(c *Conn)
	// Drop is called instead if the connection has ended. It may be called on any
	// goroutine.
	Drop()
}

// A SecureSession is a session that wants to know what a TLS handshake has agreed on.
type SecureSession interface {
	Session
	// Secured is called once, in a turn, after the handshake and before Data.
	Secured(c *Conn, state tls.ConnectionState)
}

// A Drainer is a session that says goodbye when the server shuts down.
type Drainer interface {
	Session
	// Drain is called once, in a turn, soon after the server has begun to drain; if the
	// connection is accepted or finishes its handshake later, soon after that. The
	// session may append to [Conn.Output], and may call [Conn.End]. If it does not, the connection
	// is half-closed as others are: once it is idle and Config.DrainGrace has passed.
	Drain(c *Conn)
}

// A LargeHolder is a session that holds large answers of which its connection does not know:
// those that wait for their turn behind others. See [Server.HoldLarge].
type LargeHolder interface {
	Session
	// HoldsLarge returns how many bytes those are. It may be called on any goroutine.
	HoldsLarge() int64
}

// CloseReason says why the engine ended a connection.
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
	ReasonReset                           // the network or the peer broke it
	ReasonAborted                         // the session gave it up, or panicked
	ReasonUnproven                        // no request or login was completed within ProveTimeout
	ReasonMemory                          // the budget was exceeded, and its address held most
	ReasonAddress                         // its address had MaxPerAddress connections
	ReasonUnprovenRoom                    // made room: no request or login was completed yet
	ReasonAddressRoom                     // made room: idle, and its address had most connections
	ReasonIdleRoom                        // made room: idle for longest
	ReasonLarge                           // the budget of large answers was exceeded, and its address owed most
	ReasonCrowdRoom                       // made room: in use, nothing was idle, and its address had most connections

	// CloseReasons is how many there are.
	CloseReasons
)

// String returns the word for the reason in metrics and logs.
func (r CloseReason) String() string {
	return [...]string{"end", "detached", "idle", "partial", "stalled", "too-large", "drained", "reset", "aborted",
		"unproven", "memory", "address", "room-unproven", "room-address", "room-idle", "large", "room-crowd"}[r]
}

// CloseError says why a connection ended.
type CloseError struct {
	Reason CloseReason
	Err    error // of the network, or what was given to Abort; may be nil
}

// Error implements error.
func (e *CloseError) Error() string {
	text := "loop: " + [...]string{
		ReasonEnd:      "the connection ended",
		ReasonDetached: "the connection was detached",
		ReasonIdle:     "no request came for too long",
		ReasonPartial:  "the rest of a request did not come in time",
		ReasonStalled:  "the peer does not read its answers",
		ReasonTooLarge: "a request is too large",
		ReasonDrained:  "the server shuts down",
		ReasonReset:    "the connection broke",
		ReasonAborted:  "the connection was given up",

		ReasonUnproven:     "no request or login was completed in time",
		ReasonMemory:       "the connections hold too much memory, and those of this address most",
		ReasonAddress:      "the address has too many connections",
		ReasonUnprovenRoom: "there was no place for a new connection, and this one had completed no request or login",
		ReasonAddressRoom:  "there was no place for a new connection, and this idle one was of the address with most",
		ReasonIdleRoom:     "there was no place for a new connection, and this one was idle for longest",
		ReasonLarge:        "too many bytes of large answers wait, and those of this address are most",
		ReasonCrowdRoom:    "there was no place for a new connection, none was idle, and this one was of the address with most",
	}[e.Reason]
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the error below.
func (e *CloseError) Unwrap() error { return e.Err }

// Is reports whether target is the error of the same reason.
func (e *CloseError) Is(target error) bool {
	t, ok := target.(*CloseError)
	return ok && t.Reason == e.Reason && t.Err == nil
}

// Errors that connections end with, for errors.Is.
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
