package frame_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/frame"
)

// streamBytes returns a frame of a stream with keys and a payload.
func streamBytes(id int32, kind byte, payload string, keys ...string) []byte {
	w := frame.BeginStream(nil, id, kind)
	for i := 0; i < len(keys); i += 2 {
		w.String(keys[i], keys[i+1])
	}
	b, _ := w.End()
	b = append(b, payload...)
	_ = frame.EndMessage(b, 0, 0)
	return b
}

// What the functions write is what they read, also with more keys than are written here.
func TestFramesOfStreams(t *testing.T) {
	data := append(frame.AppendStreamData([]byte("before"), -7), "payload"...)
	if err := frame.EndMessage(data, 6, 0); err != nil {
		t.Fatal(err)
	}
	if want := streamBytes(-7, frame.StreamData, "payload"); !bytes.Equal(data[6:], want) {
		t.Errorf("a message is\n%q, want\n%q", data[6:], want)
	}
	for _, b := range [][]byte{
		data[6:], streamBytes(-7, frame.StreamData, "payload", "a", "b"), streamBytes(-7, frame.StreamReset, "payload"),
		streamBytes(-7, frame.StreamMeta, "payload", "a", "b"), streamBytes(-7, frame.StreamTrailer, "payload"), streamBytes(-7, frame.StreamHeader, "payload", "a", "b"),
	} {
		var s frame.Scanner
		if n, whole, err := s.Size(b); n != len(b) || !whole || err != nil {
			t.Errorf("size %d, %v, %v; want %d", n, whole, err, len(b))
		}
		f, err := frame.OpenStream(b)
		if err != nil || f.Info.Seq != -7 || string(f.Payload) != "payload" || f.Kind < '1' || f.Kind > '5' {
			t.Errorf("%q: %c, %+v, %v", b, f.Kind, f, err)
		}
		if _, err := frame.Open(b); err == nil {
			t.Errorf("%q is a message", b)
		}
		cost := frame.StreamCost(b, len(b))
		if plain := len(b) == len(data)-6 && f.Kind == frame.StreamData; plain && cost != len(b)+64 || !plain && cost != 0 {
			t.Errorf("%q costs %d", b, cost)
		}
		frame.PutStream(b, 9)
		if f, err := frame.OpenStream(b); err != nil || f.Info.Seq != 9 {
			t.Errorf("%+v, %v", f, err)
		}
	}
	if n := frame.StreamMessageCost; n != frame.StreamCost(data[6:], len(data)-6)-len("payload") {
		t.Errorf("a message costs %d in addition to its bytes", n)
	}
	// Kitex writes the keys in any order, with the function in each frame.
	w := frame.BeginHeader(nil, frame.FlagStreaming, 5, false)
	w.Int(frame.KeyToMethod, "talk")
	w.Int(27, "3")
	b, _ := w.End()
	b[14] = 0x10
	b = append(b, 0)
	_ = frame.EndMessage(b, 0, 0)
	if f, err := frame.OpenStream(b); err != nil || f.Kind != frame.StreamData || f.Info.Seq != 5 || len(f.Payload) != 1 {
		t.Errorf("a message of Kitex: %+v, %v", f, err)
	}
}

// The first bytes of a connection tell whether it has streams.
func TestFirstFrameOfAConnection(t *testing.T) {
	stream := streamBytes(1, frame.StreamHeader, "")
	for n := range stream {
		is, known := frame.IsStream(stream[:n])
		if want := n >= 8; is != want || known != want {
			t.Errorf("%d bytes: %v, %v", n, is, known)
		}
	}
	w := frame.BeginHeader(nil, 0, 1, false)
	header, _ := w.End()
	for _, b := range [][]byte{header, call(false, binaryBody), framed(call(true, compactBody)), append([]byte{0x80}, stream[1:]...)} {
		if is, known := frame.IsStream(b); is || !known {
			t.Errorf("%q: %v, %v", b[:8], is, known)
		}
	}
}

// Whatever the bytes are, opening them does not panic, and what is opened refers to them.
func FuzzOpenStream(f *testing.F) {
	f.Add(streamBytes(1, frame.StreamData, "payload"))
	f.Add(streamBytes(1, frame.StreamHeader, "", "slipstream-window", "1000"))
	f.Add(streamBytes(0, frame.StreamMeta, "", "crrst", "1"))
	b := streamBytes(7, frame.StreamTrailer, "\x80\x01\x00\x03")
	binary.BigEndian.PutUint16(b[12:], 1000)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		is, known := frame.IsStream(b)
		s, err := frame.OpenStream(b)
		if err != nil {
			return
		}
		if !is || !known || s.Kind < frame.StreamMeta || s.Kind > frame.StreamReset || len(s.Payload) > len(b) {
			t.Fatalf("%q: %+v", b, s)
		}
		for name, value := range s.Info.Strings() {
			if len(name)+len(value) > len(b) {
				t.Fatalf("%q: a key of %d bytes", b, len(name))
			}
		}
		s.Info.Int(frame.KeyToMethod)
		if cost := frame.StreamCost(b, len(b)); cost != 0 && cost != len(b)+64 || cost != 0 && s.Kind != frame.StreamData {
			t.Fatalf("%q costs %d", b, cost)
		}
	})
}

// All lengths in a header are checked, also after the keys that are needed.
func TestHeadersOfStreamsAreChecked(t *testing.T) {
	whole := streamBytes(1, frame.StreamTrailer, "", "key", "some value")
	key, value := bytes.Index(whole, []byte("key"))-2, bytes.Index(whole, []byte("some value"))-2
	for _, at := range []int{key - 2, key, value} { // the number of pairs, and the lengths of both texts
		for _, n := range []uint16{13, 100, 0x7FFF, 0xFFFF} {
			b := bytes.Clone(whole)
			binary.BigEndian.PutUint16(b[at:], n)
			if _, err := frame.OpenStream(b); err == nil {
				t.Errorf("%d at %d: %q", n, at, b)
			}
		}
	}
	b := bytes.Clone(whole)
	b[24] = 7 // the kind of the second block
	if _, err := frame.OpenStream(b); err == nil {
		t.Errorf("a block of the kind 7: %q", b)
	}
	for n := range whole {
		if f, err := frame.OpenStream(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes: %+v", n, len(whole), f)
		}
	}
}
