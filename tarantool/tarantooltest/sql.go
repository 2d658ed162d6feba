package tarantooltest

import (
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// Column describes a column of the rows of a statement, or a parameter.
type Column = box.Column

// A Statement says how a statement of SQL is answered. Of a [Column] only the name and the type
// are told if the rest is zero.
type Statement struct {
	// Columns are those of its rows; nil: it has none.
	Columns []Column
	// Parameters are told to who prepares it. An empty name is "?", an empty type "ANY".
	Parameters []Column
	// Run returns the rows, each a []any. If there are none by Columns, it returns how many rows
	// were changed and, behind that, the numbers that were generated. nil: no rows, 0 changed.
	Run Handler
}

// SQL defines what a statement does when it is executed or prepared, to the letter, or removes
// it if st is nil.
func (s *Server) SQL(text string, st *Statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st == nil {
		delete(s.statements, text)
		return
	}
	s.statements[text] = st
}

// statementID returns the number of a statement, which follows from its text as in a real server.
func statementID(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return max(h.Sum32(), 1)
}

// sql executes or prepares a statement, or forgets a prepared one.
func (r *Request) sql() {
	s := r.conn.server
	s.mu.Lock()
	st, id := s.statements[r.Function], r.body.statement
	forgets := r.code == box.CodePrepare && id != 0 && r.Function != ""
	if forgets {
		delete(r.conn.prepared, id)
	}
	s.mu.Unlock()
	switch {
	case r.Function == "" && id == 0:
		r.refuse(missing("SQL text or stmt id"))
	case r.Function == "":
		r.refuse(fail(iproto.CodeWrongQueryID, fmt.Sprintf("Prepared statement with id %d does not exist", id)))
	case forgets:
		r.finish(nil, nil)
	case st == nil:
		r.refuse(fail(iproto.CodeUnsupported, fmt.Sprintf("tarantooltest: nothing is defined for %q", r.Function)))
	case r.code == box.CodePrepare:
		r.prepare(st)
	default:
		r.execute(st)
	}
}

func (r *Request) prepare(st *Statement) {
	id := statementID(r.Function)
	s := r.conn.server
	s.mu.Lock()
	r.conn.prepared[id] = r.Function
	s.mu.Unlock()
	n := 3
	if st.Columns != nil {
		n++
	}
	b := iproto.AppendMap(r.begin(), n)
	b = iproto.AppendUint(box.AppendKey(b, box.KeyStatementID), uint64(id))
	b = iproto.AppendUint(box.AppendKey(b, box.KeyBindCount), uint64(len(st.Parameters)))
	b = box.AppendKey(b, box.KeyBindMetadata)
	b = appendColumns(b, st.Parameters, "?", "ANY")
	if st.Columns != nil {
		b = appendColumns(box.AppendKey(b, box.KeyMetadata), st.Columns, "", "any")
	}
	r.conn.reply(box.EndReply(b, 0))
}

func (r *Request) execute(st *Statement) {
	var results []any
	var err error
	if st.Run != nil {
		results, err = st.Run(r)
	}
	var b []byte
	switch {
	case errors.Is(err, Own):
		err = fail(iproto.CodeUnsupported, "tarantooltest: a statement has no answer of the server's own")
	case err != nil:
	case st.Columns != nil:
		b = appendColumns(box.AppendKey(iproto.AppendMap(r.begin(), 2), box.KeyMetadata), st.Columns, "", "any")
		b, err = encode(box.AppendKey(b, box.KeyData), results)
	default:
		b, err = appendSQLInfo(box.AppendKey(iproto.AppendMap(r.begin(), 1), box.KeySQLInfo), results)
	}
	if err != nil {
		r.say(nil, err)
		return
	}
	r.conn.reply(box.EndReply(b, 0))
}

// appendSQLInfo appends what a statement did, told as [Statement].Run does.
func appendSQLInfo(b []byte, did []any) ([]byte, error) {
	if len(did) == 0 {
		did = []any{0}
	}
	n := min(len(did), 2)
	b, err := encode(iproto.AppendUint(iproto.AppendMap(b, n), 0), did[0])
	if err == nil && n == 2 {
		b, err = encode(iproto.AppendUint(b, 1), did[1:])
	}
	return b, err
}

// appendColumns appends descriptions; those without a name or type have the ones given.
func appendColumns(b []byte, columns []Column, name, kind string) []byte {
	b = iproto.AppendArray(b, len(columns))
	for _, c := range columns {
		if c.Name == "" {
			c.Name = name
		}
		if c.Type == "" {
			c.Type = kind
		}
		n := 2
		for _, more := range []bool{c.Collation != "", c.Nullable, c.Autoincrement, c.Span != ""} {
			if more {
				n++
			}
		}
		b = iproto.AppendString(iproto.AppendUint(iproto.AppendMap(b, n), 0), c.Name)
		b = iproto.AppendString(iproto.AppendUint(b, 1), c.Type)
		if c.Collation != "" {
			b = iproto.AppendString(iproto.AppendUint(b, 2), c.Collation)
		}
		if c.Nullable {
			b = iproto.AppendBool(iproto.AppendUint(b, 3), true)
		}
		if c.Autoincrement {
			b = iproto.AppendBool(iproto.AppendUint(b, 4), true)
		}
		if c.Span != "" {
			b = iproto.AppendString(iproto.AppendUint(b, 5), c.Span)
		}
	}
	return b
}
