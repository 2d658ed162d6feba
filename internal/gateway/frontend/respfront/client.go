package respfront

import (
	"strconv"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// maxName bounds the names that clients give themselves, in bytes.
const maxName = 64

// maxListed is the maximum of connections in CLIENT LIST.
const maxListed = 1000

// clients are the sessions of open connections, in a list for each caller, so that CLIENT LIST
// does not visit those of others. The lists are linked by pointers in the sessions.
type clients struct{ shards [16]clientShard }

// clientShard has the lists of some of the sessions.
type clientShard struct {
	mu    sync.Mutex
	first map[uint64]*session // by the caller's ID; guarded by mu, and so are the pointers of the lists
}

func (c *clients) shard(x *session) *clientShard { return &c.shards[x.id%uint64(len(c.shards))] }

func (c *clients) add(x *session) {
	s := c.shard(x)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link(x, 0)
}

func (c *clients) remove(x *session) {
	s := c.shard(x)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlink(x)
}

// move puts the session into the list of a caller; 0 means none.
func (c *clients) move(x *session, caller uint64) {
	s := c.shard(x)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlink(x)
	s.link(x, caller)
}

// link is called with mu held.
func (s *clientShard) link(x *session, caller uint64) {
	if s.first == nil {
		s.first = make(map[uint64]*session)
	}
	x.list, x.previous, x.next = caller, nil, s.first[caller]
	if x.next != nil {
		x.next.previous = x
	}
	s.first[caller] = x
}

// unlink is called with mu held.
func (s *clientShard) unlink(x *session) {
	switch {
	case x.previous != nil:
		x.previous.next = x.next
	case x.next != nil:
		s.first[x.list] = x.next
	case s.first[x.list] == x:
		delete(s.first, x.list)
	}
	if x.next != nil {
		x.next.previous = x.previous
	}
	x.previous, x.next = nil, nil
}

// each calls visit with the sessions of a caller, or of those without one if it is 0, until it
// returns false. visit must not block.
func (c *clients) each(caller uint64, visit func(*session) bool) {
	for i := range c.shards {
		if !c.shards[i].each(caller, visit) {
			return
		}
	}
}

func (s *clientShard) each(caller uint64, visit func(*session) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := s.first[caller]; x != nil; x = x.next {
		if !visit(x) {
			return false
		}
	}
	return true
}

// setCaller sets the caller that has logged in. If nil, the session is not logged in.
func (x *session) setCaller(c *access.Caller) {
	was, is := callerID(x.caller.Load()), callerID(c)
	x.caller.Store(c)
	if was != is {
		x.server.clients.move(x, is)
	}
}

// callerID returns the ID of a caller, or 0 for nil.
func callerID(c *access.Caller) uint64 {
	if c == nil {
		return 0
	}
	return c.ID()
}

func (t *turn) ok() {
	o := t.conn.Output()
	o.B = append(o.B, "+OK\r\n"...)
}

func (t *turn) ping(args [][]byte) {
	o := t.conn.Output()
	switch len(args) {
	case 1:
		o.B = append(o.B, "+PONG\r\n"...)
	case 2:
		t.echo(args)
	default:
		t.fail(FailUsage, "wrong number of arguments for 'ping' command")
	}
}

// echo answers with the argument, which counts like a document of that size.
func (t *turn) echo(args [][]byte) {
	if kind, problem := t.server.weigh(t.conn, len(args[1])); problem != "" {
		t.fail(kind, problem)
		return
	}
	t.units += len(args[1]) >> 9
	o := t.conn.Output()
	o.B = resp.AppendBulk(o.B, args[1])
	markLarge(o, len(args[1]))
}

func (t *turn) selectDatabase(args [][]byte) {
	switch n, err := parseInteger(args[1]); {
	case err != nil:
		t.fail(FailUsage, textInteger)
	case n != 0:
		t.fail(FailUsage, "DB index is out of range")
	default:
		t.ok()
	}
}

func (t *turn) quit([][]byte) {
	t.ok()
	t.conn.End()
}

func (t *turn) clientID([][]byte) {
	o := t.conn.Output()
	o.B = resp.AppendInt(o.B, int64(t.session.id))
}

func (t *turn) clientGetName([][]byte) {
	o := t.conn.Output()
	if a := t.session.about.Load(); a != nil && a.name != "" {
		o.B = resp.AppendBulkString(o.B, a.name)
	} else {
		o.B = appendNull(o.B, t.three)
	}
}

func (t *turn) clientSetName(args [][]byte) {
	if t.validName(args[2], "Client names") {
		t.session.describe(func(a *about) { a.name = string(args[2]) })
		t.ok()
	}
}

func (t *turn) clientSetInfo(args [][]byte) {
	value := args[3]
	switch {
	case equalFold(args[2], "lib-name"):
		if t.validName(value, "lib-name") {
			t.session.describe(func(a *about) { a.library = string(value) })
			t.ok()
		}
	case equalFold(args[2], "lib-ver"):
		if t.validName(value, "lib-ver") {
			t.session.describe(func(a *about) { a.version = string(value) })
			t.ok()
		}
	default:
		t.fail(FailUsage, "Unrecognized option '"+printable(args[2], 128)+"'")
	}
}

// clientSwitch accepts ON and OFF, which have no effect on documents.
func (t *turn) clientSwitch(args [][]byte) {
	if equalFold(args[2], "on") || equalFold(args[2], "off") {
		t.ok()
	} else {
		t.fail(FailUsage, textSyntax)
	}
}

// validName answers with an error if name is not valid.
func (t *turn) validName(name []byte, what string) bool {
	switch {
	case len(name) > maxName:
		t.fail(FailUsage, what+" cannot be longer than "+strconv.Itoa(maxName)+" bytes.")
	case !printableName(name):
		t.fail(FailUsage, what+" cannot contain spaces, newlines or special characters.")
	default:
		return true
	}
	return false
}

func printableName[T string | []byte](name T) bool {
	for i := range len(name) {
		if name[i] < '!' || name[i] > '~' {
			return false
		}
	}
	return true
}

// describe changes what the client reported about itself.
func (x *session) describe(change func(*about)) {
	var a about
	if old := x.about.Load(); old != nil {
		a = *old
	}
	change(&a)
	x.about.Store(&a)
}

func (t *turn) clientInfo([][]byte) {
	t.text = t.session.appendLine(t.text[:0], t.start)
	t.verbatim(t.text)
}

// clientList only lists connections of the same user: names and addresses of others are
// private.
func (t *turn) clientList([][]byte) {
	t.text = t.text[:0]
	listed := 0
	t.server.clients.each(callerID(t.session.caller.Load()), func(x *session) bool {
		t.text = x.appendLine(t.text, t.start)
		listed++
		return listed < maxListed
	})
	t.units += listed / 2
	t.verbatim(t.text)
}

// appendLine appends the line of CLIENT LIST.
func (x *session) appendLine(b []byte, now time.Duration) []byte {
	seconds := func(since time.Duration) int64 { return int64(max(now-since, 0) / time.Second) }
	b = appendNumber(append(b, "id="...), int64(x.id))
	b = append(b, " addr="...)
	if x.addr.IsValid() {
		b = x.addr.AppendTo(b)
	}
	a := x.about.Load()
	if a == nil {
		a = new(about)
	}
	b = append(append(b, " name="...), a.name...)
	b = appendNumber(append(b, " age="...), seconds(x.created))
	b = appendNumber(append(b, " idle="...), seconds(time.Duration(x.active.Load())))
	b = append(b, " flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 cmd="...)
	if c := x.last.Load(); c != nil {
		b = append(b, c.name...)
	} else {
		b = append(b, "NULL"...)
	}
	b = append(b, " user="...)
	if c := x.caller.Load(); c != nil {
		b = append(b, c.Name()...)
	} else {
		b = append(b, defaultUser...)
	}
	b = append(append(b, " lib-name="...), a.library...)
	b = append(append(b, " lib-ver="...), a.version...)
	if x.three.Load() {
		return append(b, " resp=3\n"...)
	}
	return append(b, " resp=2\n"...)
}
