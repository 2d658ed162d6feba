package buf_test

import (
	"bytes"
	"testing"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func TestGetHasTheCapacity(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 4096, 65537, buf.MaxPooled, buf.MaxPooled + 1} {
		b := buf.Get(n)
		if len(b) != 0 || cap(b) < n {
			t.Errorf("Get(%d): len %d cap %d", n, len(b), cap(b))
		}
		buf.Put(b)
	}
	buf.Put(nil)
	buf.Put(make([]byte, 700)) // not the size of a class
	if b := buf.Get(600); cap(b) != 1024 {
		t.Errorf("Get(600) has cap %d, want the class 1024", cap(b))
	}
}

func TestSizesWasteLittle(t *testing.T) {
	check := func(n int) {
		t.Helper()
		size := buf.Size(n)
		if size < n {
			t.Errorf("Size(%d) = %d", n, size)
		}
		if n > 512 && n <= 1<<20 && size >= 2*n || n > 1<<20 && size > n+n/4 {
			t.Errorf("Size(%d) = %d, which wastes more than the class may", n, size)
		}
		if n <= buf.MaxPooled && buf.Size(size) != size {
			t.Errorf("Size(%d) = %d, and Size of that is %d: Put would not keep it", n, size, buf.Size(size))
		}
	}
	for n := 1; n <= 2*buf.MaxPooled; n += n/64 + 1 {
		check(n)
	}
	for k := 9; k <= 25; k++ {
		for quarter := 4; quarter < 8; quarter++ {
			for d := -1; d <= 1; d++ {
				check(quarter<<(k-2) + d)
			}
		}
	}
}

func TestGetAndPutAllocateNothing(t *testing.T) {
	unchecked(t)
	buf.Put(buf.Get(4096))
	if n := testing.AllocsPerRun(1000, func() { buf.Put(buf.Get(4096)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// lender is memory that is lent to a chain, or to several chains as it moves.
type lender struct {
	b    []byte
	lent int // number of times it was lent and not yet returned
}

func (l *lender) Release() {
	l.lent--
	for i := range l.b {
		l.b[i] = 0xEE
	}
}

// A chain behaves like a plain slice under random operations. Lent memory is overwritten as soon as
// its owner has it back.
func TestChainEqualsASlice(t *testing.T) {
	r := testkit.Rand(t)
	var c, moved buf.Chain
	var lent []*lender
	var want, wantMoved []byte
	next := byte(0)
	fill := func(b []byte) []byte {
		for i := range b {
			next++
			b[i] = next
		}
		return b
	}
	for range 20_000 {
		switch r.IntN(9) {
		case 0, 1:
			p := fill(make([]byte, r.IntN(300)))
			c.Append(p)
			want = append(want, p...)
		case 2:
			p := fill(buf.Get(1 << r.IntN(18))[:r.IntN(500)])
			want = append(want, p...)
			c.Link(p)
		case 3:
			n := r.IntN(c.Len() + 1)
			c.Consume(n)
			want = want[n:]
		case 4:
			var spans []buf.Span
			var kept []byte
			at := 0
			for at < len(want) && r.IntN(4) > 0 {
				from := at + r.IntN(len(want)-at)
				to := from + r.IntN(len(want)-from) + 1
				to = min(to, len(want))
				spans = append(spans, buf.Span{From: from, To: to})
				kept = append(kept, want[at:from]...)
				at = to
			}
			want = append(kept, want[at:]...)
			c.Cut(spans)
		case 5:
			if r.IntN(50) == 0 {
				c.Reset()
				c.Shrink()
				want = nil
			}
		case 8:
			l := &lender{b: fill(make([]byte, 1+r.IntN(9000))), lent: 1}
			lent = append(lent, l)
			want = append(want, l.b...)
			c.Lend(l.b, l)
		case 7:
			p := fill(buf.Get(1 << r.IntN(10))[:r.IntN(2)])
			want = append(append([]byte{}, p...), want...)
			c.Prepend(p)
		case 6:
			n := r.IntN(c.Len() + 1)
			c.MoveTo(&moved, n)
			wantMoved, want = append(wantMoved, want[:n]...), want[n:]
			if moved.Len() != len(wantMoved) || !bytes.Equal(bytes.Join(moved.Segments(), nil), wantMoved) {
				t.Fatalf("%d bytes were moved wrongly", n)
			}
			n = r.IntN(len(wantMoved) + 1)
			moved.Consume(n)
			wantMoved = wantMoved[n:]
		}
		if c.Len() != len(want) || !bytes.Equal(bytes.Join(c.Segments(), nil), want) {
			t.Fatalf("chain of %d bytes differs from the slice of %d", c.Len(), len(want))
		}
		for _, owner := range moved.TakeFreed(c.TakeFreed(nil)) {
			owner.Release()
		}
	}
	c.Reset()
	moved.Reset()
	for _, owner := range moved.TakeFreed(c.TakeFreed(nil)) {
		owner.Release()
	}
	for i, l := range lent {
		if l.lent != 0 {
			t.Errorf("owner %d of %d: lent once and returned %d times", i, len(lent), 1-l.lent)
		}
	}
}
