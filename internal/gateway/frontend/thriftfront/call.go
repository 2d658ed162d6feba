package thriftfront

import (
	"encoding/binary"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// Header keys for the credentials of a call: "Bearer" and a token, or an API key. Kitex adds the prefix to metadata.
const (
	keyAuthorization     = "authorization"
	keySentAuthorization = "RPC_TRANSIT_authorization"
)

// call is a call and its answer. In a turn, its slices refer to the input buffer.
type call struct {
	session *session
	view    *View
	method  *method // nil if it is unknown
	start   time.Duration
	began   time.Time

	// Read from the message.
	format        frame.Format
	seq           int32
	name          []byte // of the method, as it was sent
	anyOrder      bool
	asksOrder     bool // the client asks whether answers may come in any order
	timeout       time.Duration
	authorization []byte
	repeated      bool // there are two different credentials
	args          []byte

	keys    [][]byte              // point into args
	columns *[]resource.KeyColumn // with which the keys were parsed
	ids     []byte                // document IDs of keys with several columns
	slots   []slot
	scratch []byte // documents in the Compact protocol, or an exception
	caller  *access.Caller
	passed  bool // authorize has admitted the call
	fresh   int  // bytes of documents that were encoded for this call
	last    bool // the answer announces that the connection will be closed
}

// slot is one key of a call and its document.
type slot struct {
	key  cache.Key
	doc  *cache.Document
	body []byte // the encoded document; nil for none
}

// kept is the number of keys for which a turn retains memory.
const kept = 64

// keptScratch is the size of the largest scratch that a turn retains.
const keptScratch = 4 * maxEncoded

// reset clears a call but retains its memory.
func (k *call) reset() {
	keys, slots, ids, scratch := k.keys, k.slots, k.ids, k.scratch
	clear(keys)
	clear(slots)
	if cap(slots) > kept || cap(keys) > kept || cap(ids) > maxKey {
		keys, slots, ids = nil, nil, nil
	}
	if cap(scratch) > keptScratch {
		scratch = nil
	}
	*k = call{keys: keys[:0], slots: slots[:0], ids: ids[:0], scratch: scratch[:0]}
}

// open reads the part of a message before its arguments.
func (k *call) open(b []byte) error {
	m, err := frame.Open(b)
	if err != nil {
		return err
	}
	var head thrift.Message
	at := 0
	if m.Compact {
		at = thrift.ReadCompactMessage(m.Payload, 0, &head)
	} else {
		at = thrift.ReadMessage(m.Payload, 0, &head)
	}
	if at < 0 {
		return thrift.Err(at, 0)
	}
	if head.Type != thrift.Call {
		return fmt.Errorf("a message of type %v; expected a call", head.Type)
	}
	k.format, k.seq, k.args = m.Format, head.Seq, m.Payload[at:]
	k.name = head.Name
	if _, own, ok := strings.Cut(text(head.Name), ":"); ok { // the form of Apache's TMultiplexedProtocol
		k.name = head.Name[len(head.Name)-len(own):]
	}
	if k.method = k.view.methods[text(k.name)]; k.method == nil {
		k.name = k.name[:min(len(k.name), maxName)] // answers repeat it
	}
	if m.HasHeader() {
		k.header(&m.Info)
	}
	return nil
}

// header reads the header of a message, in one pass.
func (k *call) header(info *frame.Info) {
	k.anyOrder = info.Flags&frame.FlagAnyOrder != 0
	var timeout, sent []byte
	asked := false
	for p := range info.Pairs {
		switch {
		case p.Name == nil:
			if p.Number == frame.KeyTimeout {
				timeout = p.Value
			}
		case string(p.Name) == keyAuthorization:
			k.authorization = p.Value
		case string(p.Name) == keySentAuthorization:
			sent = p.Value
		case string(p.Name) == frame.KeyAnyOrder:
			asked = true
		}
	}
	k.asksOrder = asked && k.anyOrder && !k.session.announced
	if len(timeout) > 0 && len(timeout) < 10 {
		if n, err := strconv.ParseUint(text(timeout), 10, 32); err == nil && n > 0 {
			k.timeout = time.Duration(n) * time.Millisecond
		}
	}
	if sent != nil {
		k.repeated = k.authorization != nil && string(sent) != string(k.authorization)
		k.authorization = sent
	}
}

// text returns b as a string that shares its memory, so it must not be used after b changes.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// read reads the keys in the arguments.
func (k *call) read() *failure {
	k.keys = k.keys[:0]
	if k.format.Compact {
		return k.readCompact()
	}
	at := 0
	for found := false; ; {
		switch {
		case at >= len(k.args):
			return failArguments
		case k.args[at] == thrift.TypeStop:
			if at++; at != len(k.args) || !found {
				return failArguments
			}
			return nil
		case at+3 > len(k.args):
			return failArguments
		}
		kind, id := k.args[at], binary.BigEndian.Uint16(k.args[at+1:])
		at += 3
		next := thrift.Skip(k.args, at, kind, thrift.MaxDepth)
		if next < 0 {
			return failArguments
		}
		if id == thriftdoc.ArgumentID && kind == k.method.argument() {
			if found {
				return failArguments
			}
			found = true
			if f := k.readKeys(at); f != nil {
				return f
			}
		}
		at = next
	}
}

// argument returns the wire type of the argument.
func (m *method) argument() byte {
	if m.list {
		return thrift.TypeList
	}
	return thrift.TypeString
}

// readKeys reads the keys at an offset. Skip has already validated them.
func (k *call) readKeys(at int) *failure {
	n := 1
	if k.method.list {
		if k.args[at] != thrift.TypeString {
			return failArguments
		}
		if n = int(binary.BigEndian.Uint32(k.args[at+1:])); n == 0 || n > maxKeys {
			return failKeys
		}
		at += 5
	}
	for range n {
		end := at + 4 + int(binary.BigEndian.Uint32(k.args[at:]))
		if end-at-4 > maxKey {
			return failLongKey
		}
		k.keys = append(k.keys, k.args[at+4:end])
		at = end
	}
	return nil
}

// parse finds the rows that the keys name.
func (k *call) parse() *failure {
	of := k.method.of
	columns := of.Columns()
	if columns == nil {
		return failNotReached
	}
	k.columns, k.slots, k.ids = columns, k.slots[:0], k.ids[:0]
	for _, key := range k.keys {
		var id string
		var err error
		if len(*columns) == 1 {
			id, err = resource.ParseID(*columns, text(key), '/')
		} else {
			from := len(k.ids)
			// The IDs of earlier keys stay valid even if this one needs a larger buffer.
			k.ids, err = resource.AppendID(k.ids, *columns, text(key), '/')
			id = text(k.ids[from:])
		}
		if err != nil {
			return &failure{exception: thriftdoc.Invalid, code: "INVALID", text: "resource " + of.Name + ", " + err.Error() + "; expected " + KeyForm(*columns)}
		}
		k.slots = append(k.slots, slot{key: cache.Key{Resource: of.ID, ID: id}})
	}
	return nil
}

// KeyForm describes the form of keys.
func KeyForm(columns []resource.KeyColumn) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, "{"+url.PathEscape(c.Name)+"}")
	}
	return strings.Join(parts, "/")
}

// size returns the total size of the documents in the answer, in bytes.
func (k *call) size() (n int) {
	for i := range k.slots {
		n += len(k.slots[i].body)
	}
	return n
}

// protocolName is the name of this frontend in the request log.
const protocolName = "thrift"

// maxText bounds the logged text of a call's first key, in bytes.
const maxText = 1 << 10

// firstKey returns the first key of a call for logs.
func (k *call) firstKey() string {
	if len(k.keys) == 0 {
		return ""
	}
	return string(k.keys[0][:min(len(k.keys[0]), maxText)])
}

// record writes the call to the request log.
func (k *call) record(f *failure, size int, took time.Duration, source frontend.Source) {
	v := k.view
	if v.requests == nil || k.method == nil {
		return
	}
	e := requestlog.Entry{Time: k.began, Took: took, Protocol: protocolName, Client: k.session.addr.Addr(), Method: k.method.name,
		Target: k.firstKey(), Resource: k.method.of.Name, Keys: len(k.keys), Bytes: size, Source: source.String()}
	if f != nil {
		e.Error = f.code
	}
	if k.caller != nil {
		e.Caller = k.caller.Name()
	}
	v.requests.Record(&e)
}
