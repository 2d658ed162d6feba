package pipe

// Traits say what a protocol is. Its zero value is a protocol that answers in the order
// of requests, on sockets chosen at random.
type Traits struct {
	// Match says how replies find their calls.
	Match Match
	// PutTicket writes a ticket into an encoded request, in its place. It is for ByTicket.
	PutTicket func(frame []byte, ticket uint64)
	// TicketBits is how many bits a ticket has: 32, or 64. If zero, it defaults to 32. With
	// 64 bits no ticket is sent twice on a socket, and the server is expected to answer
	// every request: a call that was given up counts against every bound until its reply
	// comes. With 32 bits replies may be lost: such a call is released, and only its ticket
	// stays blocked. A socket with 1,024 blocked tickets, or with Depth of them, is replaced.
	TicketBits int
	// FirstTicket is the smallest ticket that a request may have.
	FirstTicket uint32
	// Depth bounds the calls that may be at the server at a time, of all sockets together,
	// while the round trip is short; see window.go. More of them are queued here. If zero,
	// there is no bound.
	Depth int
	// FirstDepth, if positive, takes the place of Depth on a new connection until Pin.SetDepth
	// changes it there: it bounds the calls at the server exactly, however long the round trip is.
	FirstDepth int
	// Place says which socket a call is placed on, if there are several.
	Place Placement
	// Spill is, for Gather, how many more calls than the next one a socket has before the
	// next one gets some, if they are not an eighth of MaxCalls. It must be positive.
	Spill int
	// AppendProbe appends a request that every healthy server answers, possibly with an error.
	// It is sent on a new connection when the server is silent, and takes the place of
	// AppendPing; see probe.go. If nil, and AppendPing appends nothing, a ByTicket server that is silent
	// is noticed only by the kernel.
	AppendProbe func(b []byte) []byte
	// AlwaysRead keeps callers from reading their own replies: between the calls of a lone
	// caller nobody would receive pushes, for up to restEvery.
	AlwaysRead bool
	// Streams, if not nil, say how a call becomes a stream; see Engine.OpenStream. They are for ByTicket.
	Streams *StreamTraits
}

// StreamTraits say what the streams of a protocol are. Their zero value is a protocol without flow
// control and without a frame that ends a stream early. The functions are called by any goroutine,
// several at a time. Tickets are put into their frames by PutTicket.
type StreamTraits struct {
	// AppendReset appends the frame that tells the server that this side has ended a stream because
	// of cause. The server then sends the last frame of the stream, which is dropped; until it comes
	// the ticket stays blocked. If nil, the server is not told.
	AppendReset func(b []byte, cause error) []byte
	// AppendCredit appends the frame that lets the server send n more bytes, as many as Recv has
	// taken. If nil, the protocol has no such frame.
	AppendCredit func(b []byte, n int) []byte
	// Window is what the server may send on a new stream, by the protocol or by the opening frame. The
	// server is told when a quarter of it was taken. StreamConfig.ReceiveBytes should have room for
	// frames of so many bytes together. If zero, it is ReceiveBytes.
	Window int
	// Credited says that the server has to let this side send too: FirstCredit bytes when the stream
	// is opened, and more by frames that the driver tells the engine of by Pin.Grant.
	Credited    bool
	FirstCredit int
	// Cost returns the bytes of a frame that flow control counts. If the frame links to other
	// memory, size is its whole length and frame only its buffer. If nil, it is size.
	Cost func(frame []byte, size int) int
}

// cost returns the bytes of a frame that flow control counts.
func (t *StreamTraits) cost(frame []byte, size int) int {
	if t.Cost == nil {
		return size
	}
	return max(t.Cost(frame, size), 0)
}

// GreetingTicket returns the ticket for a request without a reply that is sent while a
// socket is greeted.
func (t *Traits) GreetingTicket() uint64 {
	return (uint64(t.FirstTicket)+slotMask)>>slotBits<<slotBits | slotMask
}

// Match says how replies find their calls.
type Match uint8

const (
	// InOrder: the next reply answers the oldest call in flight.
	InOrder Match = iota
	// ByTicket: a reply carries the ticket of its request, and replies come in any order.
	ByTicket
)

// Placement says which of several sockets a call is placed on.
type Placement uint8

const (
	// Random spreads calls. Where replies come in order, a call that takes long holds up
	// every call after it on its socket.
	Random Placement = iota
	// Gather keeps calls together on one socket, because writes of many calls are cheap,
	// until that socket has Spill more calls than the next, or an eighth of its bytes.
	Gather
	// LeastOutstanding gives a call to the one of two sockets, chosen at random, that has fewer
	// calls queued and outstanding, so that few calls wait for a server, or a connection, that is
	// slow. See choose.go.
	LeastOutstanding
)
