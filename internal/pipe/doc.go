// Package pipe is the client engine: one socket, many callers, replies matched
// to calls. It knows no codec; a driver supplies one as a [Protocol].
//
// A caller's request is encoded into its [Call], appended to the socket's shared
// buffer under a short lock, and written by whoever finds that the flush rule
// holds: a caller, or the reader after it has handed out replies. Replies are
// the clock of the rule. There is no timer and no delay to configure: alone, a
// request leaves at once, and under load batches grow by themselves.
//
// # Rooms
//
//	protocol.go  what a driver supplies        traits.go     what a protocol is
//	config.go    what a user may set           choose.go     placement of calls
//	engine.go    submission, waiting, closing  call.go       a call, its states and its pool
//	socket.go    submit and fail               table.go      calls between submission and reply
//	order.go     calls answered in order       slots.go      calls answered by ticket
//	rule.go      the flush rule                ages.go       young and slow calls, for tickets
//	flush.go     writing                       read.go       reading and handing out
//	solo.go      a lone caller reads           sweep.go      contexts, stalls, the backstop
//	wheel.go     deadlines                     probe.go      silent servers without a ping
//	direct.go    large replies                 lent.go       requests that link to memory
//	peer.go      dialling and reconnecting     stats.go      figures
//	raw_*.go     system calls                  options_*.go  socket options
//	stream.go    streams: opening and ending   stream_send.go, stream_receive.go their frames
//	roundtrip.go the smallest reply time       transit.go    calls that move to another socket
//	sockets.go   how many sockets there are    aim.go        replies read to where they are wanted
//
// # Ownership
//
// A call belongs to its caller, except between submission and the end of its
// wait. In a table its state is guarded by the socket's lock; taking it out is
// the claim, and whoever took it out alone writes the reply. A call that was
// given up stays in its table as a tombstone that swallows the late reply; of
// its caller and of the reader, the one who comes last recycles it.
//
// Who has the reader's role owns the read buffer; who has set the flag writing
// owns the bytes being written. Both move under the socket's lock.
package pipe
