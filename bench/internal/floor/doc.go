// Package floor implements the minimum that a server in Go can do for a request: raw system calls
// on an epoll loop, prepared answers, and a parser that extracts what it needs and trusts the rest.
// Its cost is the floor for any server that also keeps its guarantees.
//
// It is also the prototype with which individual design choices of a server's loop are measured:
// see [Options].
package floor

// An Answerer receives the unanswered input of a connection. It returns how many bytes at the front
// it has consumed and appends the answers, which are sent before the next call and must not change
// until then; they may be parts of in. An error ends the connection.
type Answerer func(in []byte, answers [][]byte) (consumed int, _ [][]byte, err error)

// Options are the design choices of a loop. The zero value is the floor.
type Options struct {
	Loops int // if 0, GOMAXPROCS

	// Block goes to sleep in epoll_wait immediately; otherwise the loop first polls without
	// waiting, which avoids the runtime's bookkeeping for a system call that may wait.
	Block bool
	// Yield lets other goroutines run once before the loop sleeps, and then polls
	// again.
	Yield bool
	// Park sleeps in the runtime's own poller, which watches the epoll descriptor;
	// otherwise a thread sleeps in epoll_wait.
	Park bool
	// Map finds connections in a map by descriptor; otherwise the event carries
	// the index and the generation of a slot in a table.
	Map bool
	// Pool says where the memory for a read comes from.
	Pool Pool
}

// A Pool is a source of read buffers.
type Pool string

const (
	OwnBuffer Pool = ""        // one buffer of the loop, never returned
	Classes   Pool = "classes" // internal/buf: pools by size class
	OneSize   Pool = "one"     // one sync.Pool
)

// readSize is the size of a read buffer, and the maximum size of a request.
const readSize = 64 << 10

// Echo answers with what it received.
func Echo(in []byte, answers [][]byte) (int, [][]byte, error) {
	return len(in), append(answers, in), nil
}
