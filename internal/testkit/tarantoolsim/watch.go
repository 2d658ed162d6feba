package tarantoolsim

import (
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// event is a key that can be watched.
type event struct {
	value   []byte // encoded; if empty, none was broadcast
	version uint64
}

// watch is the state of a connection for a key that it watches.
type watch struct {
	sync    uint64 // of the last watch request
	told    uint64 // the version that was sent
	waiting bool   // for the client, which sends a new watch request after it has processed the event
}

// Broadcast sets the value of a key and sends it to the clients that watch the key. If value is
// nil, the key has no value afterwards. It returns an error if the value cannot be encoded.
func (s *Server) Broadcast(key string, value any) error {
	var b []byte
	if value != nil {
		var err error
		if b, err = encode(nil, value); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broadcast(key, b)
	return nil
}

// broadcast is Broadcast for an encoded value. The caller holds mu.
func (s *Server) broadcast(key string, value []byte) {
	e := s.event(key)
	e.value, e.version = value, e.version+1
	for c := range s.conns {
		if w := c.watches[key]; w != nil && !w.waiting {
			c.tell(key, w, e)
		}
	}
}

// event returns the state of a key. The caller holds mu.
func (s *Server) event(key string) *event {
	e := s.events[key]
	if e == nil {
		e = &event{}
		s.events[key] = e
	}
	return e
}

// tell sends the value of a key. The caller holds server.mu.
func (c *conn) tell(key string, w *watch, e *event) {
	w.told, w.waiting = e.version, true
	c.send(appendEvent(w.sync, c.server.config.Protocol >= since[box.FeatureWatchOnce], key, e.value))
}

// appendEvent appends an event with the header that servers use: the code and, from 3.0 on, the
// sync of the watch request, which the client may have reused by then.
func appendEvent(sync uint64, syncs bool, key string, value []byte) []byte {
	n := 1
	if syncs {
		n++
	}
	b := iproto.AppendMap([]byte{0xce, 0, 0, 0, 0}, n) // length first
	b = iproto.AppendUint(box.AppendKey(b, box.KeyCode), uint64(box.CodeEvent))
	if syncs {
		b = iproto.AppendUint(box.AppendKey(b, box.KeySync), sync)
	}
	b = iproto.AppendMap(b, 1+min(len(value), 1))
	b = iproto.AppendString(box.AppendKey(b, box.KeyEventKey), key)
	if len(value) > 0 {
		b = append(box.AppendKey(b, box.KeyEventData), value...)
	}
	return box.EndReply(b, 0)
}

// watched reports whether a connection watches a key.
func (s *Server) watched(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.watches[key] != nil {
			return true
		}
	}
	return false
}

// watch starts sending the values of a key to a client, continues after the client has seen
// an event, or stops. A watch and an unwatch have no reply.
func (r *Request) watch() {
	s, c, key := r.conn.server, r.conn, r.body.event
	if r.stream != nil {
		r.refuse(fail(iproto.CodeUnableToProcessInStream, "Unable to process "+r.Type+" request in stream"))
		return
	}
	s.mu.Lock()
	e := s.event(key)
	var value []byte
	switch w := c.watches[key]; {
	case r.code == box.CodeUnwatch:
		delete(c.watches, key)
	case r.code == box.CodeWatchOnce:
		value = e.value
	case w == nil:
		w = &watch{sync: r.sync}
		c.watches[key] = w
		c.tell(key, w, e)
	default:
		w.sync = r.sync
		if w.waiting = false; w.told != e.version {
			c.tell(key, w, e)
		}
	}
	s.mu.Unlock()
	if r.code == box.CodeWatchOnce {
		n := min(len(value), 1)
		r.conn.reply(box.EndReply(append(box.AppendDataHead(r.begin(), n), value...), 0))
	}
}
