//go:build unix

package thrift_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/thrift"
)

// ordinary returns an order of about n bytes. Small orders have no lines.
func ordinary(n int) *Order {
	p := empty()
	p.ID, p.Paid, p.Quantity, p.Name = 1<<33, true, thrift.Some[int32](3), thrift.Some("an article")
	p.Codes, p.Payload = []int64{4, 5, 6}, []byte("0123456789abcdef")
	p.Tags, p.Attrs = []string{"new", "gift"}, map[string]string{"color": "green"}
	if n > 300 {
		p.Lines = sized(n - p.SizeThrift()).Lines
	}
	return p
}

var speedSink int

// BenchmarkViewOpen compares opening a view and reading three fields with decoding a struct. The
// two alternate in rounds; the ratio is the median of the ratios of the rounds.
func BenchmarkViewOpen(b *testing.B) {
	for _, size := range []int{200, 1000, 32_000, 1 << 20} {
		for as, name := range []string{"id-order", "fixed-first", "any-order"} {
			frame := mixed(rand.New(rand.NewPCG(1, 1)), ordinary(size).AppendThrift(nil), order(as), false)
			b.Run(fmt.Sprintf("%s/%d-bytes", name, size), func(b *testing.B) {
				alternate(b, len(frame), func() {
					var v OrderView
					if v.OpenThrift(frame) != nil {
						b.Fatal()
					}
					speedSink += int(v.ID()) + len(v.Name().V) + int(v.Quantity().V)
				}, func() {
					p := new(Order)
					if thrift.Unmarshal(frame, p) != nil {
						b.Fatal()
					}
					speedSink += int(p.ID) + len(p.Name.V) + int(p.Quantity.V)
				})
			})
		}
	}
}

// BenchmarkViewForward compares changing one field in a view with decoding, changing and encoding a
// struct.
func BenchmarkViewForward(b *testing.B) {
	for _, size := range []int{200, 1000, 32_000, 1 << 20} {
		frame := ordinary(size).AppendThrift(nil)
		out := make([]byte, 0, len(frame)+100)
		b.Run(fmt.Sprintf("%d-bytes", size), func(b *testing.B) {
			alternate(b, len(frame), func() {
				var v OrderView
				if v.OpenThrift(frame) != nil {
					b.Fatal()
				}
				v.SetName(thrift.Some("another name"))
				out = v.AppendThrift(out[:0])
			}, func() {
				p := new(Order)
				if thrift.Unmarshal(frame, p) != nil {
					b.Fatal()
				}
				p.Name = thrift.Some("another name")
				out = p.AppendThrift(out[:0])
			})
		})
	}
}

// BenchmarkViewLines compares reading all lines of a view with decoding a struct.
func BenchmarkViewLines(b *testing.B) {
	frame := ordinary(32_000).AppendThrift(nil)
	alternate(b, len(frame), func() {
		var v OrderView
		if v.OpenThrift(frame) != nil {
			b.Fatal()
		}
		for _, line := range v.Lines().All() {
			speedSink += int(line.ID()) + len(line.Name().V)
		}
	}, func() {
		p := new(Order)
		if thrift.Unmarshal(frame, p) != nil {
			b.Fatal()
		}
		for i := range p.Lines {
			speedSink += int(p.Lines[i].ID) + len(p.Lines[i].Name.V)
		}
	})
}

// alternate measures view and whole in alternating rounds of about 200 KB, in CPU time of the process.
func alternate(b *testing.B, size int, view, whole func()) {
	n := max(1, 200_000/size)
	var ratios, views, wholes []float64
	measure := func(f func()) float64 {
		start := cpuTime(b)
		for range n {
			f()
		}
		return float64(cpuTime(b)-start) / float64(n)
	}
	for b.Loop() {
		x, y := measure(view), measure(whole)
		ratios, views, wholes = append(ratios, x/y), append(views, x), append(wholes, y)
	}
	median := func(v []float64) float64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(views), "ns/view")
	b.ReportMetric(median(wholes), "ns/struct")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(slices.Min(views)/slices.Min(wholes), "least/least")
	b.ReportMetric(slices.Min(views), "least-ns/view")
}

func cpuTime(b *testing.B) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return t.Nano()
}
