package tarantoolsim

import (
	"context"
	"errors"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// A Request is a request of a client.
type Request struct {
	// Type is select, insert, replace, update, upsert, delete, call, eval, begin, commit, rollback, ping, auth, id, watch, unwatch or watch_once.
	Type string
	// Stream is the number of its stream, or 0 if it belongs to none.
	Stream uint64
	// Space is the name of the space, if there is one.
	Space string
	// Function is the name of the function of a call, or the expression of an eval.
	Function string
	// Args are the arguments of a call, the fields of a tuple, or the parts of a key.
	Args []any
	// Body is the complete encoded map of the request.
	Body []byte

	conn   *conn
	stream *stream
	code   box.Code
	sync   uint64
	schema uint64
	body   body
	broken error // of the body
}

// Context returns a context that ends when the connection does.
func (r *Request) Context() context.Context { return r.conn.ctx }

// Connection is the number of the connection, from 1.
func (r *Request) Connection() int { return r.conn.number }

// Push sends a message to the client before the answer.
func (r *Request) Push(v any) error {
	b, err := encode(nil, v)
	if err != nil {
		return err
	}
	r.conn.send(box.AppendPush(nil, r.sync, r.conn.server.schemaVersion(), 1, b))
	return nil
}

// A Handler answers a request. The results are the values of an answer: what a call returns, or the
// tuples of a select, each a []any. The error is one of those below, an [Error], or any other
// error, which is sent like a Lua error. Each Handler runs in its own goroutine, but those of a
// stream run one after another. It may wait, but not longer than the request's context.
type Handler func(r *Request) (results []any, err error)

// Errors for a [Handler] that returns no answer.
var (
	// Own makes the server answer as if there were no handler.
	//lint:ignore ST1012 it says what to do, and is no failure
	Own = errors.New("tarantooltest: the server's own answer")
	// HangUp closes the connection.
	//lint:ignore ST1012 it says what to do, and is no failure
	HangUp = errors.New("tarantooltest: the connection is closed")
	// Silence sends no answer to the client.
	//lint:ignore ST1012 it says what to do, and is no failure
	Silence = errors.New("tarantooltest: no answer")
)

// Error returns a server error with a number of box.error.
func Error(code uint32, message string) error { return fail(iproto.ErrorCode(code), message) }

func fail(code iproto.ErrorCode, message string) *iproto.BoxError {
	return &iproto.BoxError{Type: "ClientError", File: "tarantooltest", Message: message, Code: uint32(code)}
}

// Handle makes f answer requests of a type, or makes the server answer them again if f is nil.
// A space or a function may follow the type: "insert users", "call f".
func (s *Server) Handle(request string, f Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.handlers, request, f)
}

// Func defines a function that clients can call, or removes it if f is nil.
func (s *Server) Func(name string, f Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.functions, name, f)
}

// Eval defines what the evaluation of an expression does. Clients must spell the expression exactly
// the same.
func (s *Server) Eval(expression string, f Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set(s.evals, expression, f)
}

func set(m map[string]Handler, name string, f Handler) {
	if f == nil {
		delete(m, name)
		return
	}
	m[name] = f
}

// body holds the fields that the body of a request may have. Slices refer to the request's buffer.
type body struct {
	space, index         uint32
	spaceName, indexName string
	hasIndexName         bool
	limit, offset        uint32
	iterator             uint32
	base                 int64
	fetch                bool
	key, tuple, ops      []byte
	afterTuple           []byte
	afterPosition        string
	event                string
	timeout              float64
	user, authType       string
	features             uint64
}

// parse reads the body.
func (r *Request) parse() {
	b := &r.body
	d := iproto.NewDecoder(r.Body)
	if len(r.Body) == 0 {
		return
	}
	for range d.Map() {
		switch box.Key(min(d.Uint(), 0xff)) {
		case box.KeySpaceID:
			b.space = d.Uint32()
		case box.KeySpaceName:
			b.spaceName = d.String()
		case box.KeyIndexID:
			b.index = d.Uint32()
		case box.KeyIndexName:
			b.indexName, b.hasIndexName = d.String(), true
		case box.KeyLimit:
			b.limit = d.Uint32()
		case box.KeyOffset:
			b.offset = d.Uint32()
		case box.KeyIterator:
			b.iterator = d.Uint32()
		case box.KeyIndexBase:
			b.base = d.Int()
		case box.KeyFetchPosition:
			b.fetch = d.Bool()
		case box.KeyKey:
			b.key = d.Raw()
		case box.KeyTuple:
			b.tuple = d.Raw()
		case box.KeyOperations:
			b.ops = d.Raw()
		case box.KeyAfterTuple:
			b.afterTuple = d.Raw()
		case box.KeyAfterPosition:
			b.afterPosition = d.String()
		case box.KeyFunctionName, box.KeyExpression:
			r.Function = d.String()
		case box.KeyUserName:
			b.user = d.String()
		case box.KeyAuthType:
			b.authType = d.String()
		case box.KeyFeatures:
			b.features, _ = box.ParseFeatures(d.Raw())
		case box.KeyEventKey:
			b.event = d.String()
		case box.KeyTimeout:
			b.timeout = d.Float()
		default:
			d.Skip()
		}
	}
	args := b.tuple
	if r.code == box.CodeSelect || r.code == box.CodeDelete || r.code == box.CodeUpdate {
		args = b.key
	}
	if args != nil {
		a := iproto.NewDecoder(args)
		r.Args, _ = a.Any().([]any)
		d.Fail(a.Err())
	}
	r.broken = d.Err()
}

// note parses a request, records it, and returns the handler that a test has set for it. It waits
// while a test blocks requests.
func (s *Server) note(r *Request) (handler Handler, waits bool) {
	r.parse()
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Space = r.body.spaceName
	if sp := s.data.spaces[r.body.space]; r.Space == "" && sp != nil {
		r.Space = sp.def.Name
	}
	what := r.Space + r.Function // a request has only one of them
	entry := r.Type
	if what != "" {
		entry += " " + what
	}
	switch r.code {
	case box.CodePing, box.CodeAuth, box.CodeID:
	default:
		if sp := r.body.space; sp != vspaceID && sp != vindexID {
			s.log = append(s.log, entry)
		}
	}
	if handler = s.handlers[entry]; handler == nil {
		handler = s.handlers[r.Type]
	}
	return handler, handler != nil || s.function(r) != nil
}

// function returns the function of a call or an eval. It is called with mu held.
func (s *Server) function(r *Request) Handler {
	switch r.code {
	case box.CodeCall, box.CodeCall16:
		return s.functions[r.Function]
	case box.CodeEval:
		return s.evals[r.Function]
	}
	return nil
}

// denies reports whether the user lacks the privilege for the request. The caller holds mu.
func (s *Server) denies(r *Request) bool {
	switch r.code {
	case box.CodePing, box.CodeAuth, box.CodeID, box.CodeWatch, box.CodeUnwatch, box.CodeWatchOnce:
		return false // watching requires no privilege
	case box.CodeSelect:
		// All users may read the spaces that describe the schema: see hides.
		if sp, err := r.space(view{db: &s.data}); err != nil || sp.system {
			return false
		}
	}
	return s.locked(r)
}

// locked reports whether the user has hardly any privileges. It is called with mu held.
func (s *Server) locked(r *Request) bool { return s.config.Locked && r.conn.user == guest }

// hides reports whether the user must not see the description of a space. It is called with mu
// held.
func (s *Server) hides(r *Request, sp *space, t *tuple) bool {
	id, _ := t.field(0).(int64)
	return sp.system && id != vspaceID && id != vindexID && s.locked(r)
}

// answer answers the request, with a handler or like a real server.
func (r *Request) answer(handler Handler) {
	if handler == nil {
		r.own()
		return
	}
	if results, err := handler(r); errors.Is(err, Own) {
		r.own()
	} else {
		r.say(results, err)
	}
}

// say answers with what a handler has returned.
func (r *Request) say(results []any, err error) {
	switch {
	case errors.Is(err, HangUp):
		r.conn.close()
	case errors.Is(err, Silence):
	case err != nil:
		r.refuse(err)
	default:
		r.results(results)
	}
}

// results answers with values.
func (r *Request) results(values []any) {
	b := r.begin()
	from := 0
	b = box.AppendDataHead(b, len(values))
	var err error
	for _, v := range values {
		if r.code == box.CodeCall16 {
			if _, is := v.([]any); !is {
				v = []any{v} // the results of such a call are tuples
			}
		}
		if b, err = encode(b, v); err != nil {
			r.refuse(err)
			return
		}
	}
	r.conn.reply(box.EndReply(b, from))
}

// begin begins a reply.
func (r *Request) begin() []byte {
	return box.BeginReply(nil, uint32(box.CodeOK), r.sync, r.conn.server.schemaVersion())
}

// refuse answers with an error.
func (r *Request) refuse(err error) {
	var e *iproto.BoxError
	if !errors.As(err, &e) {
		e = &iproto.BoxError{Type: "LuajitError", File: "tarantooltest", Message: err.Error(), Code: uint32(iproto.CodeLua)}
	}
	r.conn.reply(box.AppendError(nil, r.sync, r.conn.server.schemaVersion(), e))
}

func (s *Server) schemaVersion() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.version
}
