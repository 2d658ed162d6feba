package respfront

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// turn is one call of a session's Data: the commands that it answers share a clock
// reading, a buffer, and the batch for the loader. It is pooled.
type turn struct {
	server  *Server // immutable
	session *session
	conn    conn
	start   time.Duration // when the bytes had been read, on the cache's clock
	began   time.Time     // the same for latencies
	command *command      // the current one
	three   bool          // its answer is in RESP3

	parser keyParser
	slots  []slot // of the current command
	loads  []pending
	ready  []*waiting // answers without a load that wait for earlier ones
	tally  tally
	text   []byte
	units  int // work of the current command, for the engine

	// recent is the table of the lane, or nil if another connection of the lane has it or each
	// command is logged. hitsAgain of the tally are its hits, of the resource hitsOf.
	recent    *recent.Table[*served]
	hitsOf    *served
	hitsAgain int
}

// keptSlots is the number of slots for which a turn keeps memory: 64 bytes each.
const keptSlots = 1024

// begin prepares the turn for a session's connection.
func (t *turn) begin(x *session, c conn) {
	t.session, t.conn = x, c
	t.start, t.began = c.ReadAt(), time.Now()
	t.three = x.three.Load()
	x.active.Store(int64(t.start))
	if v := t.server.live.Load(); v != x.view {
		x.meet(v)
	}
	x.checkCertificate(t.start)
	x.checkLogin(t.start)
	if x.view.requests == nil {
		t.recent = t.server.recent.Borrow(c.Lane())
	}
}

// end starts the loads, updates the counters, and returns the turn to the pool.
func (t *turn) end() {
	if len(t.loads) > 0 || len(t.ready) > 0 {
		t.depart()
	}
	if y := &t.tally; y.hits+y.others > 0 {
		took := time.Since(t.began)
		t.server.figures.Latency(frontend.SourceHit).RecordMany(took, int(y.hits))
		t.server.figures.Latency(frontend.SourceOther).RecordMany(took, int(y.others))
	}
	t.tally.addTo(&t.server.figures)
	t.countAgain(nil)
	t.server.recent.GiveBack(t.conn.Lane(), t.recent)
	t.recent = nil
	t.parser.end()
	if t.command != nil {
		t.session.last.Store(t.command)
	}
	t.session, t.conn, t.command = nil, nil, nil
	if cap(t.slots) > keptSlots {
		t.slots = nil
	}
	if cap(t.text) > largeCommand {
		t.text = nil
	}
	t.server.turns.Put(t)
}

// maxWords bounds the words of a command that is not about documents: some compare each word
// with a list.
const maxWords = 2 + maxDescribed

// answer answers one command.
func (t *turn) answer(args [][]byte, inline bool) {
	s := t.server
	t.command = nil
	if wait, ok := t.session.view.clientLimit.Allow(t.session.client, t.start, 1); !ok {
		t.tally.commands[GroupRefused]++
		t.tooMany(wait, "commands from this address")
		return
	}
	c := s.commands.find(args[0])
	if c == nil {
		t.unknown(args, inline)
		return
	}
	if inline && speaksHTTP(args, true) {
		t.http()
		return
	}
	if len(c.sub) > 0 && len(args) > 1 {
		sub := c.subcommand(args[1])
		if sub == nil {
			t.unknownSubcommand(c, args)
			return
		}
		c = sub
	}
	if !c.accepts(len(args)) {
		t.tally.commands[GroupRefused]++
		t.fail(FailUsage, "wrong number of arguments for '"+c.name+"' command")
		return
	}
	if !c.early && !t.session.known() {
		t.tally.commands[GroupRefused]++
		t.fail(FailNoAuth, "Authentication required.")
		return
	}
	if !c.keys && len(args) > maxWords {
		t.tally.commands[GroupRefused]++
		t.fail(FailUsage, "too many words for '"+c.name+"' command")
		return
	}
	t.command = c
	t.tally.commands[c.group]++
	t.units += c.units
	c.run(t, args)
	if c.group >= GroupConnection {
		t.tally.others++
	}
}

// unknown answers a command that is not in the table.
func (t *turn) unknown(args [][]byte, inline bool) {
	t.tally.commands[GroupRefused]++
	switch {
	case speaksHTTP(args, inline):
		t.http()
	case named(writes, args[0]):
		t.fail(FailReadOnly, "this server is read-only; write to the database behind it.")
	default:
		t.fail(FailUnknown, unknownCommand(args))
	}
}

func (t *turn) unknownSubcommand(c *command, args [][]byte) {
	t.tally.commands[GroupRefused]++
	if c.name == "config" && named(serverWrites, args[1]) {
		t.fail(FailReadOnly, "the configuration is a file, which cannot be changed from here.")
		return
	}
	t.fail(FailUnknown, "unknown subcommand '"+printable(args[1], 128)+"'. Try "+upper(c.name)+" HELP.")
}

// http closes a connection whose client sends HTTP.
func (t *turn) http() {
	t.server.figures.http.Add(1)
	t.server.warnHTTP(t.start, t.session.addr.Addr())
	t.conn.Abort(errHTTP)
}

// fail answers with an error.
func (t *turn) fail(kind Failure, text string) {
	t.tally.failed[kind]++
	o := t.conn.Output()
	o.B = appendFailure(o.B, kind, text)
}

func appendFailure(b []byte, kind Failure, text string) []byte {
	return resp.AppendError(b, kind.Code()+" "+text)
}

// tooMany answers a command that exceeds a limit.
func (t *turn) tooMany(wait time.Duration, what string) {
	t.server.warnThrottled(t, what)
	if wait == limit.Never {
		t.fail(FailLimited, "too many "+what+" at a time: request fewer")
		return
	}
	seconds := max(int64((wait+time.Second-1)/time.Second), 1)
	t.text = appendNumber(append(t.text[:0], "too many "+what+", try again in "...), seconds)
	t.fail(FailLimited, string(append(t.text, " s"...)))
}
