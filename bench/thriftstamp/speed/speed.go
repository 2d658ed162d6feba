// Package speed measures the designs of the prototype and a rival, alternating between them.
package speed

import (
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"time"

	proto "github.com/slipstream-go/slipstream/bench/thriftstamp/proto"
)

// Op is something to measure. Ops of one group are compared with its first.
type Op struct {
	Group, Name string
	Run         func()
}

// Rival returns the operations of a rival for an encoded Order.
type Rival func(encoded []byte) (size func() int, append func([]byte) []byte, read func([]byte) (int, error))

// Run measures operations whose groups match with orders of three sizes and writes a table of
// medians over the rounds, in CPU time. If rival is nil, it is omitted.
func Run(w io.Writer, rounds int, only string, rival Rival) {
	match := regexp.MustCompile(only)
	ballast := make([]byte, 64<<20)
	fmt.Fprintf(w, "%-28s %-10s %10s %7s %7s %7s %9s\n", "operation", "design", "ns", "ratio", "low", "high", "allocs")
	for _, size := range []int{200, 1000, 20000} {
		measure(w, rounds, fmt.Sprint(size), keep(ops(size, rival), match))
	}
	for _, n := range []int{4, 64, 1024} {
		measure(w, rounds, fmt.Sprintf("%d elements", n), keep(choices(n), match))
	}
	runtime.KeepAlive(ballast)
}

// keep returns the operations whose groups match.
func keep(list []Op, match *regexp.Regexp) []Op {
	return slices.DeleteFunc(list, func(op Op) bool { return !match.MatchString(op.Group) })
}

func measure(w io.Writer, rounds int, label string, list []Op) {
	first := make(map[string]int)
	times := make([][]float64, len(list))
	loops := make([]int, len(list))
	for i, op := range list {
		if _, ok := first[op.Group]; !ok {
			first[op.Group] = i
		}
		loops[i] = calibrate(op.Run)
	}
	for range rounds {
		for _, i := range rand.Perm(len(list)) {
			start := cpuTime()
			for range loops[i] {
				list[i].Run()
			}
			times[i] = append(times[i], float64((cpuTime()-start).Nanoseconds())/float64(loops[i]))
		}
	}
	for i, op := range list {
		base := times[first[op.Group]]
		ratios := make([]float64, rounds)
		for r := range ratios {
			ratios[r] = times[i][r] / base[r]
		}
		slices.Sort(ratios)
		sorted := slices.Sorted(slices.Values(times[i]))
		fmt.Fprintf(w, "%-28s %-10s %10.0f %7.2f %7.2f %7.2f %9.1f\n", op.Group+"/"+label, op.Name,
			sorted[rounds/2], ratios[rounds/2], ratios[rounds/4], ratios[rounds-1-rounds/4], allocs(op.Run))
	}
}

// calibrate returns the number of loops that take about 20 ms.
func calibrate(run func()) int {
	for n := 1; ; n *= 2 {
		start := cpuTime()
		for range n {
			run()
		}
		if t := cpuTime() - start; t > 5*time.Millisecond {
			return max(1, int(20*time.Millisecond*time.Duration(n)/t))
		}
	}
}

func allocs(run func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		run()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / 100
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ops returns the operations. The designs are compared with the rival, or with
// straight if there is none.
func ops(size int, rival Rival) []Op {
	p := proto.Sample(size)
	b := p.AppendStraight(nil)
	buf := make([]byte, 0, 2*len(b))
	q := p.CopyStraight()
	var bits proto.BitsOrder
	var pointers proto.PointersOrder
	must(bits.ReadBits(b))
	must(pointers.ReadPointers(b))
	var list []Op
	add := func(group, name string, run func()) { list = append(list, Op{group, name, run}) }
	codec := func(name string, size func() int, app func([]byte) []byte, read func([]byte) (int, error)) {
		add("append", name, func() { buf = app(buf[:0]) })
		add("size+append", name, func() {
			if n := size(); cap(buf) < n {
				buf = make([]byte, 0, n)
			}
			buf = app(buf[:0])
		})
		add("read", name, func() { must(read(b)) })
	}
	if rival != nil {
		size, app, read := rival(b)
		codec("fastgo", size, app, read)
		codec("control", size, app, read)
	}
	codec("straight", p.SizeStraight, p.AppendStraight, func(b []byte) (int, error) { return new(proto.Order).ReadStraight(b) })
	codec("mixed", p.SizeMixed, p.AppendMixed, func(b []byte) (int, error) { return new(proto.Order).ReadMixed(b) })
	codec("calls", p.SizeCalls, p.AppendCalls, func(b []byte) (int, error) { return new(proto.Order).ReadCalls(b) })
	codec("table", p.SizeTable, p.AppendTable, func(b []byte) (int, error) { return new(proto.Order).ReadTable(b) })
	codec("bits", bits.SizeBits, bits.AppendBits, func(b []byte) (int, error) { return new(proto.BitsOrder).ReadBits(b) })
	codec("pointers", pointers.SizePointers, pointers.AppendPointers, func(b []byte) (int, error) { return new(proto.PointersOrder).ReadPointers(b) })

	var v proto.OrderStraightView
	var t proto.OrderTableView
	sum := 0
	add("index+3 fields", "straight", func() {
		must(0, v.Index(b))
		sum += int(v.ID()) + len(v.Name()) + int(v.Price())
	})
	add("index+3 fields", "table", func() {
		must(0, t.Index(b))
		sum += int(t.ID()) + len(t.Name()) + int(t.Price())
	})
	add("forward, 1 field changed", "decode", func() {
		var o proto.Order
		must(o.ReadMixed(b))
		o.ID = 7
		buf = o.AppendMixed(buf[:0])
	})
	add("forward, 1 field changed", "edit", func() {
		var e proto.OrderEdit
		must(0, e.View.Index(b))
		e.SetID(7)
		buf = e.Append(buf[:0])
	})
	j := p.AppendJSONStraight(nil)
	text := make([]byte, 0, 2*len(j))
	add("JSON append", "straight", func() { text = p.AppendJSONStraight(text[:0]) })
	add("JSON append", "table", func() { text = p.AppendJSONTable(text[:0]) })
	add("JSON read", "straight", func() { must(0, new(proto.Order).ReadJSONStraight(j)) })
	add("JSON read", "table", func() { must(0, new(proto.Order).ReadJSONTable(j)) })
	add("equal", "straight", func() { must(p.EqualStraight(q), nil) })
	add("equal", "table", func() { must(p.EqualTable(q), nil) })
	add("copy", "straight", func() { p.CopyStraight() })
	add("copy", "table", func() { p.CopyTable() })
	add("string", "straight", func() { sum += len(p.StringStraight()) })
	add("string", "table", func() { sum += len(p.StringTable()) })
	return list
}
