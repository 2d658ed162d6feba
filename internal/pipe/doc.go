// Package pipe is the client engine: it carries the calls of many goroutines over one socket or a few, and
// matches replies to calls. It has no codec; a driver supplies one as a [Protocol].
//
// A caller's request is encoded into its [Call] and appended to the socket's shared
// buffer under a short lock. The goroutine that finds that the flush rule
// holds writes the buffer: a caller, or the reader after it has delivered replies. Replies are
// the clock of the rule. There is no timer and no delay to configure: with nothing in flight, a
// request is written immediately, and under load batches grow automatically.
//
// # Files
//
//	protocol.go  what a driver supplies        traits.go     properties of a protocol
//	config.go    configuration                 choose.go     placement of calls
//	engine.go    submission, waiting, closing  call.go       a call, its states and its pool
//	socket.go    submit and fail               table.go      calls between submission and reply
//	order.go     calls answered in order       slots.go      calls answered by ticket
//	rule.go      the flush rule                ages.go       young and slow calls, for tickets
//	flush.go     writing                       read.go       reading and delivering
//	solo.go      a lone caller reads           sweep.go      contexts, stalls, the backstop
//	wheel.go     deadlines                     probe.go      silent servers without a ping
//	direct.go    large replies                 lent.go       requests that link to memory
//	peer.go      dialing and reconnecting      stats.go      counters
//	raw_*.go     system calls                  options_*.go  socket options
//	stream.go    streams: opening and ending   stream_send.go, stream_receive.go their frames
//	roundtrip.go the smallest reply time       transit.go    calls that move to another socket
//	sockets.go   the number of sockets         aim.go        replies read into the caller's memory
//	pin.go       calls on one connection
//
// # Ownership
//
// A call belongs to its caller, except between submission and the end of its
// wait. While it is in a table, its state is guarded by the socket's lock. Removing it from the table is
// the claim: only the goroutine that removed it writes the reply. A call that was
// given up stays in its table as a tombstone that swallows the late reply; the last
// of its caller and the reader recycles it.
//
// The goroutine that has the reader's role owns the read buffer; the goroutine that has set the flag writing
// owns the bytes being written. Both change hands under the socket's lock.
package pipe
