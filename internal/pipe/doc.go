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
//	stream_solo.go  the receiver of a lone stream reads
//	roundtrip.go the smallest reply time       transit.go    calls that move to another socket
//	sockets.go   the number of sockets         aim.go        replies read into the caller's memory
//	pin.go       calls on one connection
//
// # What a protocol declares
//
// A driver implements [Protocol] in one file, redis/proto.go or tarantool/protocol.go, and declares the
// rest as data in [Traits]. Redis matches in order, has no bound of calls at the server, and places calls
// on a random socket; its callers never read their own replies with client-side caching. Tarantool matches
// by ticket, IPROTO's sync, of 64 bits from 0 on (box.PutSync); at most Options.Window calls, by default
// 8,192, are at the server; it places calls by Gather with a Spill of 512, and callers never read their own
// replies on the connection for watchers.
//
// Redis greets with HELLO or AUTH, SELECT and CLIENT TRACKING, and Tarantool with IPROTO_ID, AUTH and a
// watch of box.shutdown, after the greeting of the server. The scanner of Redis reports replies and pushes;
// that of Tarantool reports replies, events (Push) and box.session.push (Interim).
//
// Only the matcher (table.go, over order.go and slots.go) knows how replies find their calls.
//
// # Tickets
//
// A ticket is a slot and its generation. It is not issued again on a socket while its call has no reply.
// With 64 bits generations never repeat, and a call that was given up keeps its slot until its reply comes.
// With 32 bits they repeat after 4,096 calls, and replies may be lost: such a call is released with its
// charge, and only the slot stays blocked. A socket with 1,024 blocked slots, or as many as its window,
// accepts no more calls, waits for those in flight and is replaced. Requests without a reply (OneWay) have
// tickets that no call uses. A reply to a ticket that no longer awaits one is dropped and counted
// (Snapshot.Late); a ticket that was never sent is a protocol error.
//
// # The life of a call
//
//  1. Acquire (call.go). A Call comes from a pool, and the driver encodes the request into Frame, on the
//     caller's goroutine. With ten thousand in flight none is in a cache, and a call costs the cache lines
//     that it touches: most touch four of six, and what is rare (errors, completers, large replies) is in
//     the last two.
//  2. Submit (engine.go, socket.go). choose places the call. If that socket accepts no calls, any
//     other that accepts calls gets it, or the caller waits until the state of a socket changes
//     (wait.go). submit reserves calls and bytes by a compare-and-swap before it locks, so that
//     rejected callers do not wait for the lock. Under the lock the call gets its place in the
//     matcher, its ticket and its timer, and its frame is appended to queued. Frames of 16 KiB and
//     more are copied before that and linked.
//  3. The flush rule (rule.go): write if nothing is in flight, if queued × k ≥ in flight, or if
//     more than 32 KiB are queued. k is the round trip divided by 0.128 ms, from 1 to 256. If there
//     is a window, only what it admits counts as queued; a ping bypasses it and is written before
//     all calls. With tickets, only calls younger than four round trips count as in flight
//     (ages.go), so slow calls never hold back a new one; if no reply comes at all, the sweeper
//     looks again after 1 ms (Snapshot.Aged).
//  4. Flush (flush.go). If the rule holds and no goroutine is writing, the caller writes; if calls
//     have overlapped recently, it yields once first, so that runnable neighbors add theirs. The
//     queued bytes become outgoing, and one non-blocking write is tried. What the kernel does not
//     take, and everything over TLS, goes to the writer, the only goroutine that may wait for the
//     kernel. After each write the flag writing is cleared and the rule tested again in one
//     critical section.
//  5. Read (read.go). The reader fills its buffer; cutFrames finds up to 512 whole replies; takeOut
//     removes their calls from the matcher under one lock. Removing a call is the claim: only the
//     goroutine that did it touches the call. A reply is copied once. Only then are callers woken,
//     and after that the reader writes what the rule allows. If it has woken callers and there are
//     several connections, it yields once before, so that their next calls leave in the same write
//     (docs/decisions/0021-reader-yields.md). Meanwhile any of them may write: the flag writing is
//     free.
//  6. Wake (ending.go). The caller waits on its own channel, unless the call has ended by then, decodes on
//     its own goroutine and releases the call. A completer is called on the reading goroutine instead.
//
// Calls with several replies (gather.go): package redis cuts a batch into parts of at most 1,024
// commands or 128 KiB. A part is one frame and one call, with a place in the matcher for each
// reply. The reader adds replies outside the lock; meanwhile neither the sweeper nor a failing
// socket ends the call. It keeps the replies that came before a failure, and Written shows which
// commands cannot have reached the server.
//
// Lone callers read their own replies (solo.go). After 64 consecutive calls that overlapped with no
// other, the keeper lends the reader's role; the first call that overlaps with another returns it.
// Before it writes, such a caller checks whether something arrived while the role was free. If the
// server has hung up, or has sent something that answers no call, the socket is closed and the
// request was not sent.
//
// On Frame.Last, the last message, the socket is retired before any reply cut with it is handed out: what
// was sent is awaited, what was not sent moves.
//
// # Calls without a reply
//
//   - Deadline. Each socket has a hierarchical timing wheel of 1 ms (wheel.go;
//     docs/decisions/0017-deadlines-and-large-replies.md), which a call enters when it is queued and leaves
//     when its reply is matched. The engine's sweeper (sweep.go) sleeps until the next bucket with calls,
//     without a goroutine if that is 10 ms or more away, so that an idle engine needs no stack for it. A
//     deadline is honored within 2 ms of virtual time.
//   - Canceled context. No goroutine waits on Done. While there are calls with contexts that can be
//     canceled, the sweeper polls the contexts every 4 ms, at most 256 under one lock. If the
//     protocol answers in order, it polls the contexts of the calls that were already there in the
//     previous round. With tickets, it polls half of all calls, and a context that several callers
//     share is checked once. A cancel is honored within 10 ms at any number of calls.
//   - Given up. If the call's bytes are still queued, they are cut out: NotSent. Otherwise it is
//     MaybeExecuted and keeps its place, as a tombstone that swallows the late reply; the caller or
//     the reader recycles it, whichever finishes last. A call of a group that makes sense only
//     together (Call.Whole) is sent anyway.
//   - The socket fails (fail, once). Calls that no write has taken move (see below). The others
//     end: NotSent if the kernel has not taken their first byte (Closed if the client closes),
//     otherwise MaybeExecuted.
//   - Silence. The server owes replies and sends nothing for StallTimeout. If the protocol answers
//     in order, the socket is closed; Call.SlowFor extends the time. With tickets, a ping is sent
//     at half of it, and only an unanswered ping closes the socket. A protocol without a ping
//     (AppendProbe) probes on a new connection: a reply proves that the server is alive; without
//     one the socket gets no new calls until data arrives or a later probe is answered. It is not
//     closed, because a call may take any time. If the protocol answers in order, a socket whose
//     oldest call was given up is closed after StallTimeout, even if the server is alive: if the
//     reply was lost, no later call would ever be answered.
//   - Doubt. A message that cannot be cut, a surplus reply or an unknown ticket closes the socket, and no
//     call gets a reply that was cut with it.
//
// # Calls that move
//
// When a socket fails or is retired, its calls of which no byte was handed to a write move to
// another socket, immediately and in the order of their requests (transit.go), unnoticed by the
// driver. This costs submission neither a lock nor an atomic operation.
//
//   - The following do not move: pings, calls with a pin, calls of an engine that fails fast, calls
//     that have moved three times (a server might accept connections only to end them), and a DoAll
//     of which a part was handed to a write. Its members that were given up unsent do not count,
//     but one of a Whole group keeps the group where it is.
//   - Where to: any socket that accepts calls and has room. Otherwise the call is in transit until a socket
//     has room, its context or deadline ends, DialTimeout passes without any socket, or the engine closes.
//     The sweeper visits it; no goroutine waits, so calls with completers wait there too.
//   - Order: a new socket takes the calls in transit before callers see it, and callers see that a socket
//     is retired after its calls have left. So a call stays ahead of those that its caller submits later
//     (with several sockets only if another had room immediately).
//   - Charge: what a call in transit is charged stays with the peer that it left until another
//     socket has reserved it. The old socket accepts no calls, so no other call takes the room, and
//     the peer's next socket starts with that charge. So no share is ever exceeded, and a call
//     always fits into the next socket of its own peer. If another peer has the place (see below,
//     Retired), its next socket takes the calls beyond its share, and their charge moves along.
//   - Place: calls move under transit.mu, which Snapshot and Shutdown hold while they count: each call is
//     counted once.
//
// # Large requests and replies
//
//   - Lent memory (lent.go). A driver may pass a slipstream.Body: a buffer, and links to memory
//     that is sent from where it is. It stays lent until the call has been released and no write
//     can read it, even if the call was given up. Then its owner is notified, by the goroutine that
//     releases the call or, if the write ends later, by the sweeper. A frame of which a part was
//     written is always completed, so a cancel closes no connection. Frames without links are
//     always copied. Redis and Tarantool lend nothing.
//   - Large replies (direct.go). If 16 KiB or more of a reply are missing when its length is known,
//     the rest is read into a dedicated buffer, by the system call that also reads what follows,
//     and that buffer becomes the call's. It grows with what arrives, by at most 1 MiB or the
//     number of bytes that have arrived, whichever is greater, so a claimed length allocates
//     little.
//   - The read buffer is released while the reader waits, except over TLS (raw_unix.go). It grows only
//     while messages are small, because large ones would be copied out of it.
//
// A driver may provide memory for the body of a large reply (Call.ReadInto), and its scanner
// reports where the body of a message is after it has seen the head (Splitter; aim.go). The reader
// then reads head and tail into its own memory, and the body into that of the call, by the system
// call that also reads what follows. Where reads may wait (TLS), the body goes through the read
// buffer, which is a copy. GetAppend and similar methods want a value at the end of dst.
//
// The memory must not be written to after the call has ended, and a cancel must end the call within
// 10 ms. Both hold, because the reader never waits while it may write. For each read it acquires
// the call (under the socket's lock, if the call is pending and still the one that the message
// answers), reads the available bytes without waiting, and releases the call. A call that must be
// given up while it is held is given up by the next sweep, like a call to which replies are being
// added, and a socket that fails leaves its calls to the reader. After the end of the call, the
// rest of its reply is dropped. So no hook has to notify the caller when its memory is free again.
// The memory of requests needs such a hook, because the kernel may read it long after the call has
// ended.
//
// # Streams
//
// A stream is a call that sends further frames and receives many (stream.go;
// docs/decisions/0019-streams.md). It is for protocols that match by ticket and set Traits.Streams; for
// others, OpenStream returns ErrNoStreams. thrift/rpc uses it.
//
//  1. Open. The opening frame is a call: it takes a ticket and is charged like others, and its reply is the
//     last frame of the stream. So the matcher, the rule of tickets, the end of a socket, Shutdown and the
//     counters apply to it unchanged. It is pinned and does not move. All that the stream may receive is
//     reserved from StreamConfig.MaxBytes.
//  2. Send (stream_send.go). A further frame is a call without a reply that carries the ticket of the
//     stream; it is queued and flushed with all others. Send waits while too much of the stream is queued
//     (SendBytes), while too much of all streams of the socket is queued (SocketBytes; then each queues one
//     frame in turn), and while the server gives no credit (Pin.Grant). So the bytes ahead of a call are
//     bounded.
//  3. Receive (stream_receive.go). The scanner reports a frame as Part, and the last one as Done. The reader
//     looks up the streams of a read under one lock, copies each frame into the inbox of its stream, and
//     never waits. A frame that does not fit ends its stream. A server with flow control gets credit for what
//     Recv has taken (AppendCredit) after each quarter of its window; a stream has at most one such frame
//     queued. The receiver of the only stream of a socket without calls reads for itself (stream_solo.go).
//  4. End. A stream ends once, in one of three ways. When its last frame arrives, Recv returns the
//     remaining frames and then io.EOF, and Send returns ErrStreamEnded. It also ends with its
//     socket. And this side can end it, by Close, its context, or a full inbox: its call is given
//     up like any other, its queued frames are cut out, and a reset frame asks the server for the
//     last frame. The ticket stays blocked until that comes. The context is watched by
//     context.AfterFunc, because the sweeper would have to poll it for as long as the stream is
//     open.
//
// An open stream owes no reply, so the stall watch and the measurement of the round trip ignore it. It
// counts in a window, of which streams may have half. If its connection is retired it continues. But if too
// many connections of the place were retired, and none accepts calls for DialTimeout, it ends, because it
// keeps the next connection from being dialed. Frames for a stream that has ended, or after its last frame,
// are dropped and counted in Snapshot.Late; a frame with a ticket that was never sent closes the socket.
//
// # Sockets that come and go
//
// Engine.SetSockets changes the number of sockets while calls are in flight (sockets.go). Callers
// read the sockets from an immutable list behind one atomic pointer: one atomic load to place a
// call, one for its bounds. A list is replaced as a whole, under transit.mu. It contains the peers
// that have a place, as many as there should be sockets, followed by the peers that are leaving,
// which no longer have one. The drivers use a fixed number of sockets.
//
//   - Growing adds peers. Calls are placed on a new socket once its peer has finished the greeting,
//     as after a reconnect.
//   - Shrinking gives up the least healthy places. The order is: sockets that accept calls, silent
//     ones, peers without a socket, peers whose last attempt to connect failed, retired sockets. Of
//     the sockets that accept calls, it keeps those that were silent for the shortest time while
//     they owed replies, and of these the ones with the most calls. The others are retired
//     together, as by Frame.Last: unsent calls move first, then callers see that the socket accepts
//     none, replies that are owed are awaited, and the socket closes with ErrSurplus, which is also
//     the cause in the event. Pinned calls stay, and no further calls can be pinned. A peer without
//     a socket stops connecting.
//   - Retired. If a socket is retired and still has calls, its peer leaves, and another peer takes the
//     place and dials (succeed): a slow call does not delay the next connection. At most four sockets of a
//     place may have calls in this way (maxRetired); a fifth is retired in its place, and its calls are
//     awaited before the next connection. The bounds are divided among more peers meanwhile, but those of
//     the retired ones are not reduced: the sum is at most 1 + 1/2 + 1/3 + 1/4 + 1/5 = 2.3 times the
//     bounds. Calls that stay on a retired socket, because they are pinned or a part of their DoAll was
//     written, may be executed after calls that were submitted later.
//   - Shares. MaxCalls, MaxBytes and Depth are divided by the number of all peers, also of those that
//     leave, because their calls are in flight. When a peer has ended, the shares of the others grow. The
//     sum exceeds a bound only while a socket has more than its share, because peers were added or calls
//     have moved to it; it accepts no call until it has less. A counter for the whole engine would be
//     exact, and every call of every socket would write to the same cache line.
//   - Calls without a home. Calls in transit wait for the next socket of their peer if no other socket has
//     room. A peer that leaves has no next socket, and after growing a DoAll may be greater than any share.
//     Any socket takes such calls immediately, beyond its share: their charge moves along.
//   - Ends. Close sets a flag, locks transit.mu once, and then waits for keepers; SetSockets checks the
//     flag under that lock before it starts any. A peer that leaves stays in the list until its keeper has
//     ended and no call in transit is charged to it, so Snapshot and Shutdown see its calls. A place that
//     is given up while its peer connects is noticed before the socket is published.
//
// TestTransitUnderEveryOrder and TestTransitUnderRandomOrders change the number between all other events;
// TestSocketsComeAndGoUnderLoad does so with callers, in virtual time.
//
// # Rules of concurrency
//
//   - The matcher, queued, roles, flags and counters are guarded by socket.mu, which is held to
//     append, swap and remove, but never during a system call.
//   - The read buffer and the scanner belong to the goroutine that has the reader's role: the keeper, a
//     lone caller, or the receiver of a lone stream. The role moves under socket.mu.
//   - outgoing belongs to the goroutine that has set writing: a caller, the reader, the writer or the
//     sweeper.
//   - A call belongs to its caller; in the matcher, it is guarded by socket.mu; after that, it belongs to
//     the goroutine that removed it, and then to its caller or completer.
//   - Goroutines are a keeper for each socket, which dials, greets and reads; a writer for each socket once
//     something had to wait; a sweeper for each engine; and at times a probe. Close ends and awaits them.
//
// Lock order: transit.mu, peer.mu, socket.mu, Stream.mu; two sockets are locked only under
// transit.mu. User code runs without locks. Panics of completers, OnEvent and owners are recovered;
// a panic of the protocol or of OnPush closes the socket, but does not end the process. There is no
// lock-free queue: the lock costs about a tenth of the CPU at 1,024 callers and orders everything.
// Snapshot.Backstop counts writes that only the sweeper made although the rule held; if it is not
// 0, there is a bug.
package pipe
