package buf_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// inputModel is an Input with the plain slice that it must equal, and the slices
// that it returned since the last Release with their expected contents.
type inputModel struct {
	t    *testing.T
	r    *rand.Rand
	in   buf.Input
	want []byte
	next byte
	out  [][2][]byte
}

func (m *inputModel) fill(b []byte) []byte {
	for i := range b {
		m.next++
		b[i] = m.next
	}
	return b
}

// gave checks a slice that the input returned, and records it.
func (m *inputModel) gave(what string, got, want []byte) {
	m.t.Helper()
	if !bytes.Equal(got, want) {
		m.t.Fatalf("%s: got %d bytes %x, want %d bytes %x", what, len(got), head(got), len(want), head(want))
	}
	m.out = append(m.out, [2][]byte{got, bytes.Clone(want)})
}

func head(b []byte) []byte { return b[:min(len(b), 16)] }

func (m *inputModel) step() {
	switch m.r.IntN(9) {
	case 0, 1:
		p := m.fill(make([]byte, m.r.IntN(300)))
		m.in.Append(p)
		m.want = append(m.want, p...)
	case 2, 3:
		n := m.r.IntN(1 << m.r.IntN(14))
		if m.r.IntN(100) == 0 {
			n = 65536 + m.r.IntN(100_000)
		}
		room := m.in.Reserve(n)
		if len(room) < max(n, 1) {
			m.t.Fatalf("Reserve(%d) returned %d bytes", n, len(room))
		}
		p := m.fill(room[:m.r.IntN(min(len(room), 2000)+1)])
		m.want = append(m.want, p...)
		m.in.Commit(len(p))
	case 4:
		n := m.r.IntN(len(m.want) + 10)
		m.gave("Peek", m.in.Peek(n), m.want[:min(n, len(m.want))])
	case 5, 6:
		n := m.r.IntN(m.r.IntN(len(m.want)+1) + 10)
		m.gave("Next", m.in.Next(n), m.want[:min(n, len(m.want))])
		m.want = m.want[min(n, len(m.want)):]
	case 7:
		n := m.r.IntN(m.r.IntN(len(m.want)+1) + 10)
		m.in.Discard(n)
		m.want = m.want[min(n, len(m.want)):]
	case 8:
		for _, pair := range m.out {
			if !bytes.Equal(pair[0], pair[1]) {
				m.t.Fatalf("a slice of %d bytes changed before Release", len(pair[1]))
			}
		}
		m.out = m.out[:0]
		m.in.Release()
		if m.r.IntN(50) == 0 {
			m.in.Reset()
			m.in.Reset()
			m.want = nil
		}
		if n := m.in.Links(); len(m.want) == 0 && n > 0 {
			m.t.Fatalf("an empty input holds %d links after Release", n)
		}
	}
}

func TestInputEqualsASlice(t *testing.T) {
	m := &inputModel{t: t, r: testkit.Rand(t)}
	for range 50_000 {
		m.step()
		if m.in.Len() != len(m.want) {
			t.Fatalf("Len is %d, want %d", m.in.Len(), len(m.want))
		}
	}
	m.gave("Next of everything", m.in.Next(len(m.want)), m.want)
	m.in.Reset()
}

// A message of 256 KiB that arrives byte by byte, and is inspected after each byte, must not be
// copied each time: that would be 32 GiB.
func TestInputByteByByteIsLinear(t *testing.T) {
	const size = 1 << 18
	for _, reserve := range []int{0, 1, 4096, 65536} {
		var in buf.Input
		moves := 0
		var before *byte
		for i := range size {
			if reserve == 0 {
				in.Append([]byte{byte(i)})
			} else {
				in.Reserve(reserve)[0] = byte(i)
				in.Commit(1)
			}
			p := in.Peek(i + 1)
			if len(p) != i+1 || p[i] != byte(i) || p[i/2] != byte(i/2) {
				t.Fatalf("reserve %d: wrong bytes after %d", reserve, i+1)
			}
			if &p[0] != before {
				moves++
				before = &p[0]
			}
			in.Release()
		}
		// Starting from half a KiB, each join grows the message by at least a quarter: 9 doublings
		// take at most 28 joins.
		if moves > 30 {
			t.Errorf("reserve %d: the message moved %d times, want at most 30", reserve, moves)
		}
		in.Discard(size)
		in.Release()
		if n := in.Links(); n != 0 {
			t.Errorf("reserve %d: %d links held at the end, want 0", reserve, n)
		}
	}
}

func TestInputTrickleHoldsLittle(t *testing.T) {
	var in buf.Input
	in.Append([]byte("PING"))
	if n := len(in.Reserve(1)); n > 512 {
		t.Errorf("an input of 4 bytes has room for %d more, want at most 512", n)
	}
	in.Reset()
}

// A connection whose requests are split anywhere needs no further memory.
func TestInputAllocatesNothing(t *testing.T) {
	unchecked(t)
	var in buf.Input
	request := make([]byte, 700)
	in.Append(request[:100]) // a remainder that is always present
	round := func() {
		for range 7 {
			copy(in.Reserve(4096), request)
			in.Commit(len(request))
			in.Peek(in.Len())
			in.Next(700)
			in.Release()
		}
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n != 0 && !raceEnabled {
		t.Errorf("%v allocations with a rest, want 0", n)
	}
	in.Reset()
	spanning := func() {
		for range 5 {
			in.Append(request)
		}
		in.Next(3500)
		in.Release()
	}
	spanning()
	if n := testing.AllocsPerRun(1000, spanning); n != 0 && !raceEnabled {
		t.Errorf("%v allocations across links, want 0", n)
	}
}

func FuzzInput(f *testing.F) {
	f.Add(uint64(1))
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) {
		m := &inputModel{t: t, r: testkit.Fork(seed, 0)}
		for range 200 {
			m.step()
		}
		m.in.Reset()
	})
}
