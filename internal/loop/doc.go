// Package loop is the server engine. It owns sockets and buffers and passes the bytes of
// each connection to a session; it knows no protocol.
//
// On Linux a few goroutines, one for each processor, wait with epoll for thousands of connections
// and call their sessions (eventloop_linux.go). An answer that is available immediately involves no
// other goroutine. On other systems, and for TLS, a goroutine for each connection fulfills the same
// contract (goroutines.go, goroutines_conn.go, goroutines_turn.go).
//
// A [Server] serves connections. A [Conn] is one connection as its [Session] sees it, an [Output]
// is what is to be sent, a [Deferred] is the place reserved for an answer that comes later, and a
// [Payload] is a large input.
//
// Both backends share session.go and config.go (the contract), conn.go (the state of a connection),
// deferred.go (answers in order), post.go (tasks of other goroutines), output.go, expect.go (large
// inputs), limits.go (limits of one connection), sweep.go (time limits), budget.go and account.go
// (memory), and places.go (the number of connections).
//
// # Backends
//
// Two backends fulfill one contract, and the frontends' tests run over both. A server may use both;
// they share places, accounts and limits.
//
//   - epoll (Linux, clear text; eventloop_linux.go, epollconn_linux.go, cohort_linux.go). A loop
//     for each processor has its own epoll instance, listening socket (SO_REUSEPORT) and
//     connections, which never change loops. It calls epoll_wait(0), without notifying the scheduler,
//     as long as events come; then it yields, unless the scheduler has a processor besides those of
//     the loops, and waits. Connections are registered once, edge-triggered for both directions:
//     neither a pause nor a full socket costs an epoll_ctl. Event data is a slot and its
//     generation, so an event of a connection that has gone does not reach its successor. An idle
//     connection has no buffer; only the start of a request is kept.
//   - Goroutines (other systems, and TLS: listeners of loop.Secure; goroutines*.go). Each
//     connection has a reader. The turn is a lock that is not held while a read or write may wait.
//     If no goroutine has the turn when an answer becomes complete, a helper takes it, so Complete
//     never waits. The sweeper lets a new reader take over from one that is stuck in a write.
//
// # The life of a connection
//
//  1. Accept. A connection takes a place, counts for its address, and gets its session from
//     Config.New. Over TLS its goroutine computes the handshake; there are places for half as many
//     as processors, which a handshake releases while it waits for the peer (handshake.go). Then SecureSession.Secured receives the result.
//  2. Turn. All work of a connection is done in its turn: write what waits, run what was posted,
//     give the session what earlier reads left, read once, write the answers. The loop reads into
//     its own 64 KiB; a read that brought less than there was room for has emptied the socket. A
//     connection with more to read goes to the end of the round. Connections that are ready
//     together and owe nothing form a cohort of up to 32: all are read, then all answered, then all
//     written.
//  3. Answers are appended to Conn.Output: small parts are copied, parts of 8 KiB and more go by
//     reference, and all answers of one read leave by one write or writev. Output.LinkOwned
//     notifies the Owner of linked memory once, when nothing reads it anymore: the kernel has
//     taken it, or the connection has ended and no write is in flight. What the kernel does not
//     take stays with the connection.
//  4. Deferred answers (deferred.go). Conn.Defer reserves the place of an answer. Later answers go
//     to its tail, so that misses of a pipeline load side by side and all answers keep their order
//     (DeferAnyOrder is for protocols that need none). Complete, on any goroutine, puts the answer
//     into the loop's mail and wakes the loop by an eventfd if it sleeps: the poster checks waiting
//     after posting, the loop its mail after setting waiting, so one of them sees the other. Then
//     Reply.Write or Drop is called, once. Conn.DeferInto uses a Deferred in an object of the
//     session, such as a waiting HTTP request, and allocates nothing: the engine does not touch it
//     after it has called Write or Drop, and a late Complete does nothing, because its Ticket has
//     the number of the use.
//  5. Posts (post.go). Conn.Post runs a Task in a turn of the connection; its answer follows all
//     that are owed. A task that was accepted is run or, if the connection ends first, dropped,
//     exactly once. The queue holds 64 tasks and as many bytes as the connection may have output,
//     and tasks run only while there is room to write: a peer that does not read fills only its own
//     queue. A turn runs no more tasks than there were at its start. Posts are for protocols whose
//     servers send frames unasked, such as RPC.
//  6. Detach. Once every earlier answer has been written, the connection leaves the engine with its
//     unread bytes; until then nothing is parsed. It keeps its place until it is closed.
//  7. End. A connection that ends in order is half-closed and read to its end, for a second at
//     most: closing it with unread bytes would make the kernel send a reset, which destroys answers
//     in flight. Session.Closed is the last call.
//
// # Workers and drain
//
// [Workers] (workers.go) do what has to wait. The frontends share them: goroutines with grown
// stacks, of which 64 stay when idle and at most 32,768 exist. More jobs wait in order; each
// frontend bounds how many it starts. One goroutine at a time is on its way to a job, and wakes the
// next before it runs its own, so a burst of short jobs needs few of them and a job that blocks
// delays no other. Answers of a connection that are complete when its loop processes them are written
// together.
//
// Shutdown accepts for 30 ms more, empties the queues of the listening sockets and closes them. A
// session that is a Drainer is called once, to say goodbye in its protocol; over HTTP answers say
// Connection: close. Connections may send requests for DrainGrace (HTTP 2 s, Redis none). Then one
// in use is half-closed with an answer, and others when they were quiet for as long. With
// internal/gateway/handover a new process has the same listening sockets by then, so no connection
// is refused.
//
// A peer that sends nothing more still gets the answers that it is owed. A session whose answers may depend on
// what it sends is an EndWatcher, which is told.
//
// # Concurrency
//
// All state of a connection belongs to its turn: the loop, or the goroutine that has the turn. Only
// Complete, Conn.Post and Server.HoldLarge may be called from elsewhere. A panic of a session ends
// only its connection.
//
// # Shares
//
// Connections that have little to do must not wait for those that have much (share.go). A session
// charges its turn in units of about 1 us (Conn.Spend): 1 for an answer and for each 512 bytes
// copied or hashed or 64 compressed. After 256 units it is Full, and after 1 MiB a turn writes no
// more: the connection goes to the end of eventLoop.again, with its unanswered input. A round
// serves 64 units of that queue, at least one turn, before epoll is asked again. While more than 32
// connections wait there, turns are shorter. If more than 32 are ready, or some wait, a connection
// that has sent more than 2 KiB is queued before it is answered.
//
// What takes longer than 0.3 ms is done by a worker: hashing more than 128 KiB, compressing more
// than 16 KiB, a batch that copies more than 256 KiB or checksums more than 1 MiB
// (httpfront/work.go), a Redis command of more than 256 keys (manykeys.go), putting together
// several documents of which one was loaded. A round also bounds completed answers (64), posts, and
// the connections that a sweep or a survey visits (1,024). Goroutines have no shares: the scheduler
// divides the processor.
//
// A connection stays with the loop that accepted it, also when another one has nothing to do. How many
// connections would have been served sooner there, Stats.Late says (late_linux.go).
//
// # Limits and budgets
//
// A session is Full, and its connection not read, at 256 KiB of output or 128 deferred answers. By
// default a request has 5 s to arrive, an idle connection 60 s, and output for a peer that reads
// less than 1 KiB a second 30 s. A sweep checks all connections at least twice a second; there is
// no timer for each. Conn.SetLimits (limits.go) replaces limits once a session knows its peer.
// Without descriptors accepting pauses for 50 ms.
//
// A [Budget] (budget.go, account.go), which all frontends share, bounds unread output (its buffer,
// not its length), unconsumed input, posts, and what waiting requests weigh (Deferred.Weigh). A
// turn adds what has changed to its lane's account; one that ends owing nothing, such as a plain
// hit on epoll, touches no counter. Lanes report in steps of 1/64 of the limit divided by their
// number, so they share no cache line unless memory moves. A connection's room is set at the start
// of a turn or cohort: 256 KiB below half of the limit, 16 KiB above half, 4 KiB above the limit.
// It does not change during the turn: a session that stopped because it was Full must still look
// full afterwards, or the rest of its input would be taken for the start of a request. Above the
// limit the keeper, one goroutine for each server, surveys the connections of all frontends and
// closes, one by one, the largest of the address that holds most by then, until an eighth of the
// budget is free.
//
// Large answers are marked (Output.Large). Each frontend has a budget for them, which includes
// those that sessions hold after other answers (LargeHolder) and what net/http writes. It is exact,
// and affects the room only of connections that owe one.
//
// Large inputs (expect.go): a session that has read a length and compared it with its own limit calls
// Conn.Expect(n). The next n bytes go from read(2) into parts of pooled memory, and Receiver.Received
// gets them together; until then Data is not called. Only what came with the length is copied. A part
// is as large as what has arrived before it, or waits in the kernel, between 4 and 256 KiB: an
// announced length takes no memory, and no turn reads more than 256 KiB. Payload.Bytes joins the
// parts, outside the loop. A part is counted in the budget before it is allocated: up to one and a
// half of the limit it is granted, while the keeper closes connections; past that the connection is
// not read until the sweep finds room. The same holds for the rest of a request whose start was read.
// A peer that sends less than 1 KiB a second within PartialTimeout is closed; the total time is not
// limited. While many connections are ready, those with large inputs come last.
//
// Places (places.go): if a connection waits and no place is free, the keeper frees 1/128 of the
// places: first connections that never called Conn.Prove (no request, or no login where one is
// required), then idle ones, then those in use that were quiet for a second and are not the only
// one of their address. Those in use of an address with more than a quarter of the places count as
// idle. Among these the address with most connections loses first, then the longest idle. While one
// address has most of the places and most of its connections are in use, no proven connection of a
// smaller address is closed: a crowd that has just filled the places is not quiet yet, and idle
// clients would pay for its first 100 ms. If it stays busy, every second its connections that were
// quiet for the longest time are closed. Connections younger than a second do not make room for
// each other, and while an eighth of the places is new, proven ones stay.
package loop
