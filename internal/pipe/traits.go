package pipe

// Traits are the properties of a protocol. The zero value is a protocol that answers in the order
// of requests, on sockets chosen at random.
type Traits struct {
	// Match is how replies are matched to calls.
	Match Match
	// PutTicket writes a ticket into an encoded request. It is for ByTicket.
	PutTicket func(frame []byte, ticket uint64)
	// TicketBits is the number of bits of a ticket: 32 or 64. If zero, it defaults to 32. With
	// 64 bits no ticket is sent twice on a socket, and the server is expected to answer
	// every request: a call that was given up counts against every bound until its reply
	// comes. With 32 bits, replies may be lost: such a call is released, and only its ticket
	// stays blocked. A socket with 1,024 blocked tickets, or with Depth of them, is replaced.
	TicketBits int
	// FirstTicket is the smallest ticket that a request may have.
	FirstTicket uint32
	// Depth bounds the calls that may be at the server at a time on all sockets together,
	// while the round trip is short; see window.go. Further calls are queued. If zero,
	// there is no bound.
	Depth int
	// FirstDepth, if positive, takes the place of Depth on a new connection until Pin.SetDepth
	// is called. It bounds the calls at the server exactly, however long the round trip is.
	FirstDepth int
	// Place is the rule that places calls on one of several sockets.
	Place Placement
	// Spill is, for Gather, how many more calls than the next socket a socket gets before the
	// next one is used; at most an eighth of MaxCalls. It must be positive.
	Spill int
	// AppendProbe appends a request that every healthy server answers, possibly with an error.
	// It is sent on a new connection when the server is silent, and takes the place of
	// AppendPing; see probe.go. If nil, and AppendPing appends nothing, a ByTicket server that is silent
	// is noticed only by the kernel.
	AppendProbe func(b []byte) []byte
	// AlwaysRead prevents callers from reading their own replies: between the calls of a lone
	// caller, no goroutine would receive pushes for up to restEvery.
	AlwaysRead bool
	// Streams are the properties of streams, or nil if the protocol has none; see Engine.OpenStream. They are for
	// ByTicket.
	Streams *StreamTraits
}

// StreamTraits are the properties of the streams of a protocol. The zero value is a protocol without flow
// control and without a frame that ends a stream early. The functions must be safe for concurrent
// use. PutTicket writes the tickets into the frames.
type StreamTraits struct {
	// AppendReset appends the frame that informs the server that this side has ended a stream because
	// of cause. The server then sends the last frame of the stream, which is dropped; until it comes,
	// the ticket stays blocked. If nil, the server is not informed.
	AppendReset func(b []byte, cause error) []byte
	// AppendCredit appends the frame that permits the server to send n more bytes, as many as Recv has
	// returned. If nil, the protocol has no such frame.
	AppendCredit func(b []byte, n int) []byte
	// Window is the number of bytes that the server may send on a new stream, by the protocol or by the opening
	// frame. The server receives credit when Recv has returned a quarter of it. StreamConfig.ReceiveBytes should
	// have room for frames of Window bytes in total. If zero, it defaults to ReceiveBytes.
	Window int
	// Credited means that this side needs credit of the server to send: FirstCredit bytes when the stream
	// is opened, and more by frames that the driver passes to Pin.Grant.
	Credited    bool
	FirstCredit int
	// Cost returns the number of bytes of a frame that flow control counts. If the frame links to other
	// memory, size is its total length, and frame is only its buffer. If nil, the cost is size.
	Cost func(frame []byte, size int) int
}

// cost returns the bytes of a frame that flow control counts.
func (t *StreamTraits) cost(frame []byte, size int) int {
	if t.Cost == nil {
		return size
	}
	return max(t.Cost(frame, size), 0)
}

// GreetingTicket returns the ticket for a request without a reply that is sent by
// Greet.
func (t *Traits) GreetingTicket() uint64 {
	return (uint64(t.FirstTicket)+slotMask)>>slotBits<<slotBits | slotMask
}

// A Match is how replies are matched to calls.
type Match uint8

const (
	// InOrder means that the next reply answers the oldest call in flight.
	InOrder Match = iota
	// ByTicket means that a reply carries the ticket of its request. Replies may come in any order.
	ByTicket
)

// A Placement is the rule that places calls on one of several sockets.
type Placement uint8

const (
	// Random places a call on a random socket. With InOrder, a slow call delays
	// every call after it on its socket.
	Random Placement = iota
	// Gather keeps calls together on one socket, because writes of many calls are cheap,
	// until that socket has Spill more calls than the next, or an eighth of its bytes.
	Gather
	// LeastOutstanding places a call on the one of two random sockets that has fewer
	// queued and outstanding calls, so that few calls wait for a slow server or
	// connection. See choose.go.
	LeastOutstanding
)
