package tarantool

import (
	"context"
	"fmt"
	"sync"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Column describes a column of the result of a statement.
type Column struct {
	Name, Type string
	// The following fields are set only for sessions that request full metadata.
	Collation     string
	Span          string // the text of the expression
	Nullable      bool
	Autoincrement bool
}

// readColumns reads descriptions of columns, or nil if there are none.
func readColumns(raw []byte) ([]Column, error) {
	if raw == nil {
		return nil, nil
	}
	c := box.ParseColumns(raw)
	columns := make([]Column, c.Len)
	for i := range columns {
		columns[i] = Column(c.Next())
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return columns, nil
}

// SQLResult is a destination for all parts of the reply to a statement.
type SQLResult struct {
	// Rows is a pointer to the destination of the rows, set before the request; if nil,
	// they are discarded.
	Rows any
	// Columns describe the rows. They are nil for a statement without rows.
	Columns []Column
	// Changed is the number of rows that the statement changed, and Generated are the numbers that
	// it generated for autoincrement fields.
	Changed   uint64
	Generated []int64
}

// readReply implements wholeReply.
func (r *SQLResult) readReply(l iproto.Limits, m box.Message, body []byte) error {
	response, err := box.ParseBody(m.Code, body)
	if err != nil {
		return err
	}
	if r.Columns, err = readColumns(response.Metadata); err != nil {
		return err
	}
	if r.Changed, r.Generated, err = box.ParseSQLInfo(response.SQLInfo); err != nil {
		return err
	}
	return decodeData(l, dataIn(&response), r.Rows)
}

// NamedValue is a named parameter of a statement.
type NamedValue struct {
	name  string
	value any
}

// Named returns the value of the parameter :name, @name or $name of a statement. If name has none
// of these prefixes, it means :name.
func Named(name string, value any) NamedValue {
	if name != "" && name[0] != ':' && name[0] != '@' && name[0] != '$' {
		name = ":" + name
	}
	return NamedValue{name, value}
}

// appendBinds appends the parameters of a statement.
func appendBinds(b []byte, args []any) ([]byte, error) {
	b = iproto.AppendArray(b, len(args))
	for i, a := range args {
		if n, ok := a.(NamedValue); ok {
			b = iproto.AppendString(iproto.AppendMap(b, 1), n.name)
			a = n.value
		}
		var err error
		if b, err = appendValue(b, a); err != nil {
			return b, argumentError("parameter", i, err)
		}
	}
	return b, nil
}

// ExecuteRequest executes an SQL statement.
type ExecuteRequest struct {
	sql        string
	id         uint32 // of a prepared statement; then sql is ignored
	prepared   bool
	args       []byte
	repeatable bool
	err        error
}

// Execute makes a request that executes an SQL statement. The data of its reply are the rows, each
// an array; with an [SQLResult] as the destination, the other parts of the reply are available,
// too. Parameters are values, or [Named] values.
func Execute(sql string, args ...any) ExecuteRequest {
	r := ExecuteRequest{sql: sql}
	r.args, r.err = appendBinds(nil, args)
	return r
}

// Idempotent marks the statement as one that may be executed twice with the same effect as once:
// see [ProcedureRequest.Idempotent].
func (r ExecuteRequest) Idempotent() ExecuteRequest { r.repeatable = true; return r }

func (r ExecuteRequest) encode(b []byte, x encoding) ([]byte, error) {
	if r.err != nil {
		return b, r.err
	}
	from := len(b)
	b = x.begin(b, box.CodeExecute)
	if r.prepared {
		b = box.AppendExecuteIDHead(b, r.id)
	} else {
		b = box.AppendExecuteHead(b, r.sql)
	}
	return box.EndRequest(append(b, r.args...), from), nil
}

func (r ExecuteRequest) about() requestInfo {
	return requestInfo{code: box.CodeExecute, repeatable: r.repeatable}
}

// A Statement is a prepared SQL statement. Servers prepare statements for a connection. A Statement
// has a preferred connection, and is prepared again on another one where needed. It is safe for
// concurrent use.
type Statement struct {
	// Immutable.
	client *Client
	sql    string

	mu sync.Mutex
	// Guarded by mu.
	place place
}

// place is the connection on which a statement is prepared.
type place struct {
	pin    pipe.Pin
	id     uint32
	params uint32
}

// Prepare prepares an SQL statement.
func (c *Client) Prepare(ctx context.Context, sql string) (*Statement, error) {
	s := &Statement{client: c, sql: sql}
	if _, err := s.prepare(ctx, place{}); err != nil {
		return nil, err
	}
	return s, nil
}

// Parameters returns the number of parameters of the statement.
func (s *Statement) Parameters() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.place.params)
}

// prepare returns a place other than old.
func (s *Statement) prepare(ctx context.Context, old place) (place, error) {
	s.mu.Lock()
	now := s.place
	s.mu.Unlock()
	if now != old && now.pin.Alive() {
		return now, nil
	}
	pin := old.pin
	if !pin.Alive() {
		var err error
		if pin, err = s.client.engine.Pin(ctx); err != nil {
			return place{}, s.client.fail.Named("prepare", err)
		}
	}
	var p prepared
	if err := s.client.exec(ctx, &p, prepareRequest{sql: s.sql}, route{pin: pin}); err != nil {
		return place{}, err
	}
	now = place{pin: pin, id: p.id, params: p.params}
	s.mu.Lock()
	s.place = now
	s.mu.Unlock()
	return now, nil
}

// Do executes the statement and decodes the rows into dst, as [Client.Do] does.
func (s *Statement) Do(ctx context.Context, dst any, args ...any) error {
	r := Execute(s.sql, args...)
	r.prepared = true
	s.mu.Lock()
	at := s.place
	s.mu.Unlock()
	for again := false; ; again = true {
		if !at.pin.Alive() {
			var err error
			if at, err = s.prepare(ctx, at); err != nil {
				return err
			}
		}
		r.id = at.id
		err := s.client.exec(ctx, dst, r, route{pin: at.pin})
		// The server has dropped the statement, or the connection has ended: the statement was not
		// executed.
		if again || !IsCode(err, iproto.CodeWrongQueryID) && !isPinLost(err) {
			return err
		}
		if at, err = s.prepare(ctx, at); err != nil {
			return err
		}
	}
}

// Close makes the server drop the statement.
func (s *Statement) Close(ctx context.Context) error {
	s.mu.Lock()
	at := s.place
	s.place = place{}
	s.mu.Unlock()
	if !at.pin.Alive() {
		return nil
	}
	err := s.client.exec(ctx, nil, prepareRequest{id: at.id, forget: true}, route{pin: at.pin})
	if isPinLost(err) || IsCode(err, iproto.CodeWrongQueryID) {
		return nil
	}
	return err
}

type prepareRequest struct {
	sql    string
	id     uint32
	forget bool
}

func (r prepareRequest) encode(b []byte, x encoding) ([]byte, error) {
	from := len(b)
	b = x.begin(b, box.CodePrepare)
	if r.forget {
		b = box.AppendUnprepare(b, r.id)
	} else {
		b = box.AppendPrepare(b, r.sql)
	}
	return box.EndRequest(b, from), nil
}

func (r prepareRequest) about() requestInfo { return requestInfo{code: box.CodePrepare} }

// prepared is the destination of the reply to a prepare.
type prepared struct{ id, params uint32 }

// readReply implements wholeReply.
func (p *prepared) readReply(_ iproto.Limits, m box.Message, body []byte) error {
	r, err := box.ParseBody(m.Code, body)
	if err != nil {
		return err
	}
	if r.StatementID == 0 {
		return fmt.Errorf("a reply without the number of a statement")
	}
	p.id, p.params = r.StatementID, r.BindCount
	return nil
}
