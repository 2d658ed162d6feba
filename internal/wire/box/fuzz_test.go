package box

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// FuzzScan checks that the fast path and the general one agree, that a truncated message yields
// More with a valid lower bound, and that corrupt messages yield errors of the documented type.
func FuzzScan(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(captured)) {
		f.Add(testkit.Unhex(f, captured[name]), 0)
	}
	f.Add(AppendEvent(nil, "k", []byte{1}), 40)
	f.Add(testkit.Unhex(f, "ce00000009 83 05 01 01 cc80 00 00 80"), 14)
	f.Add(testkit.Unhex(f, "ce0000001784 00ce00000000 01cf0000000000000007 05ce00000050"), 0)
	f.Fuzz(func(t *testing.T, data []byte, most int) {
		s := Scanner{MaxMessage: most}
		m, err := s.Scan(data)
		g, gerr := s.scan(data)
		if m != g || (err == nil) != (gerr == nil) || err != nil && err.Error() != gerr.Error() {
			t.Fatalf("%x: quick %+v, %v; general %+v, %v", data, m, err, g, gerr)
		}
		r, rerr := ScanRequest(data, most)
		switch {
		case err != nil:
			if !errors.As(err, new(*ProtocolError)) || m.Kind != More {
				t.Fatalf("%x: %+v, error %v of type %T", data, m, err, err)
			}
			return
		case m.Kind == More:
			if m.Len <= len(data) {
				t.Fatalf("%x: wants %d bytes and has %d", data, m.Len, len(data))
			}
			return
		}
		if m.Len > len(data) || m.BodyAt > m.Len || m.BodyAt < 4 {
			t.Fatalf("%x: %+v", data, m)
		}
		for n := range m.Len {
			if p, err := s.Scan(data[:n]); err != nil || p.Kind != More || p.Len <= n || p.Len > m.Len {
				t.Fatalf("%x: %d of %d bytes: %+v, %v", data, n, m.Len, p, err)
			}
		}
		// Both sides read headers the same way.
		if rerr != nil || r.Len != m.Len || uint32(r.Code) != m.Code || r.Sync != m.Sync || r.Schema != m.Schema || r.BodyAt != m.BodyAt {
			t.Fatalf("%x: message %+v, request %+v, %v", data, m, r, rerr)
		}
		checkBody(t, m.Code, data[m.BodyAt:m.Len])
	})
}

// checkBody reads a body and compares the result with the body's map as Any reads it.
func checkBody(t *testing.T, code uint32, body []byte) {
	r, err := ParseBody(code, body)
	if err != nil {
		if !errors.As(err, new(*iproto.DecodeError)) {
			t.Fatalf("%x: error %v of type %T", body, err, err)
		}
		return
	}
	if (code&uint32(CodeError) != 0) != (r.Error != nil) {
		t.Fatalf("%x of code %x: error %v", body, code, r.Error)
	}
	for _, parse := range []func() error{
		func() error { return second(columnsOf(r.Metadata)) },
		func() error { return second(columnsOf(r.BindMetadata)) },
		func() error { return second(ParseFeatures(r.Features)) },
		func() error { _, _, err := ParseSQLInfo(r.SQLInfo); return err },
	} {
		if err := parse(); err != nil && !errors.As(err, new(*iproto.DecodeError)) {
			t.Fatalf("%x: error %v of type %T", body, err, err)
		}
	}
	d := iproto.NewDecoder(body)
	m, _ := d.Any().(map[any]any)
	if d.Err() != nil || d.Len() > 0 {
		return // not fully checked, or not supported by Any
	}
	_, has := m[int64(KeyData)]
	if has != (r.Data != nil) {
		t.Fatalf("%x: data %x, want some: %v", body, r.Data, has)
	}
	d.Reset(r.Data)
	if has {
		d.Skip()
	}
	if d.Err() != nil || d.Len() != 0 {
		t.Fatalf("%x: data %x: %v", body, r.Data, d.Err())
	}
}

// FuzzBody parses bodies with codes of all kinds.
func FuzzBody(f *testing.F) {
	for _, name := range slices.Sorted(maps.Keys(captured)) {
		f.Add(uint32(0), testkit.Unhex(f, captured[name])[replyHead:])
		f.Add(uint32(0x8001), testkit.Unhex(f, captured[name])[replyHead:])
	}
	f.Add(uint32(CodeEvent), AppendEvent(nil, "k", []byte{1})[replyHead:])
	f.Add(uint32(0), AppendID(nil, 10, []Feature{1, 2}, AuthSHA1))
	f.Fuzz(checkBody)
}

// FuzzRequest checks that ScanRequest reads what the append functions write, whatever bytes follow
// it.
func FuzzRequest(f *testing.F) {
	f.Add(byte(1), uint32(1), uint64(0), "select", []byte{0x90}, []byte("behind"))
	f.Add(byte(8), uint32(1<<31), uint64(1<<40), "return 1", []byte{0x91, 1}, []byte{})
	f.Fuzz(func(t *testing.T, code byte, sync uint32, stream uint64, text string, last, behind []byte) {
		before := []byte("before")
		b := BeginRequest(bytes.Clone(before), Code(code))
		if stream != 0 {
			b = Header{Code: Code(code), Stream: stream}.Append(bytes.Clone(before))
		}
		b = append(AppendEvalHead(b, text), last...)
		b = EndRequest(b, len(before))
		frame := b[len(before):]
		PutSync(frame, uint64(sync))
		r, err := ScanRequest(append(bytes.Clone(frame), behind...), 0)
		want := Request{Len: len(frame), Code: Code(code), Sync: uint64(sync), Stream: stream, BodyAt: r.BodyAt}
		if err != nil || r != want || Sync(frame) != uint64(sync) || !bytes.Equal(b[:len(before)], before) {
			// A two-byte code does not fit into a header of fixed size.
			if code < fixMap {
				t.Fatalf("%x: %+v, %v, want %+v", frame, r, err, want)
			}
			return
		}
		d := iproto.NewDecoder(frame[r.BodyAt:])
		if d.Map() != 2 || d.Uint() != uint64(KeyExpression) || d.String() != text || d.Uint() != uint64(KeyTuple) || !bytes.Equal(d.Rest(), last) && len(last) > 0 {
			t.Fatalf("%x: body %x, %v", frame, frame[r.BodyAt:], d.Err())
		}
	})
}

// FuzzGreeting checks that a greeting that was parsed and written again parses to the same value.
func FuzzGreeting(f *testing.F) {
	f.Add([]byte(line(firstLine) + line(secondLine)))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := ParseGreeting(b)
		if err != nil {
			if !errors.As(err, new(*ProtocolError)) {
				t.Fatalf("error %v of type %T", err, err)
			}
			return
		}
		again, err := ParseGreeting(AppendGreeting(nil, g))
		if err != nil || again.Version != g.Version || again.Protocol != g.Protocol || again.Instance != g.Instance || !bytes.Equal(again.Salt, g.Salt) {
			t.Fatalf("%q: %+v, again %+v, %v", b, g, again, err)
		}
	})
}
