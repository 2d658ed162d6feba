package respfront

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
)

// keyParser parses the keys of a command and decides whether its caller may read them.
type keyParser struct {
	view        *View
	caller      *access.Caller
	certificate *access.Certificate // of the connection, in addition to the caller

	ids     []byte                // of keys of several columns
	columns *[]resource.KeyColumn // of the key that was parsed last
	of      *served               // the resource of that key
}

// begin prepares the parser for a command of the session.
func (p *keyParser) begin(x *session) {
	p.view, p.caller, p.certificate, p.ids = x.view, x.caller.Load(), x.certificate(), p.ids[:0]
}

// end drops what belongs to a session.
func (p *keyParser) end() {
	*p = keyParser{ids: p.ids[:0]}
	if cap(p.ids) > largeCommand {
		p.ids = nil
	}
}

// A keyError is the answer to a command with a malformed key.
type keyError struct {
	kind    Failure
	problem string
}

func (e *keyError) Error() string { return e.problem }

// parse parses a key that the caller may read. The key's ID may be a part of b or of the
// parser's buffer.
func (p *keyParser) parse(b []byte) (key cache.Key, _ *keyError) {
	if len(b) > maxKey {
		return key, &keyError{FailKey, "the key is longer than " + strconv.Itoa(maxKey) + " bytes"}
	}
	name, rest, found := bytes.Cut(b, colon)
	v := p.view.resources.ByName[string(name)]
	if v == nil {
		return key, &keyError{FailKey, "there is no such resource; a key is the name of a resource, a colon and the key of a row"}
	}
	if by, refusal := v.Access.Admit(p.caller, p.certificate); refusal != nil {
		if by == nil {
			return key, &keyError{FailNoAuth, "Authentication required."}
		}
		return key, &keyError{FailNoPerm, "this user may not read documents of " + v.Name}
	}
	columns := v.Columns()
	switch {
	case columns == nil:
		return key, &keyError{FailLoading, "the database has not been reached yet"}
	case !found:
		return key, &keyError{FailKey, "the key names a resource but no row; expected " + keyForm(v.Name, *columns)}
	}
	p.columns, p.of = columns, v
	var id string
	var err error
	if len(*columns) == 1 {
		id, err = resource.ParseID(*columns, text(rest), ':')
	} else {
		from := len(p.ids)
		// IDs of earlier keys stay valid if this one needs a larger buffer.
		p.ids, err = resource.AppendID(p.ids, *columns, text(rest), ':')
		id = text(p.ids[from:])
	}
	if err != nil {
		return key, &keyError{FailKey, "resource " + v.Name + ", " + err.Error() + "; expected " + keyForm(v.Name, *columns)}
	}
	return cache.Key{Resource: v.ID, ID: id}, nil
}

var colon = []byte{':'}

// keyForm describes the form of the keys of a resource.
func keyForm(name string, columns []resource.KeyColumn) string {
	var b strings.Builder
	b.WriteString(name)
	for _, c := range columns {
		b.WriteString(":{" + url.PathEscape(c.Name) + "}")
	}
	return b.String()
}
