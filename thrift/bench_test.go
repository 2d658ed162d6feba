package thrift_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// The benchmarks use orders of about 200 bytes, 1 KB and 20 KB in the Binary protocol.
func benchmark(b *testing.B, work func(v *Order) func()) {
	for _, size := range []int{200, 1000, 20_000} {
		v := sized(size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			f := work(v)
			for b.Loop() {
				f()
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	benchmark(b, func(v *Order) func() {
		buf := v.AppendThrift(nil)
		return func() { buf = v.AppendThrift(buf[:0]) }
	})
}

func BenchmarkRead(b *testing.B) {
	benchmark(b, func(v *Order) func() {
		buf := v.AppendThrift(nil)
		var r thrift.Reader
		return func() {
			if _, err := r.Read(buf, 0, new(Order)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReadAgain(b *testing.B) {
	benchmark(b, func(v *Order) func() {
		buf := v.AppendThrift(nil)
		var r thrift.Reader
		var to Order
		return func() {
			r.Recycle()
			to.Reset()
			if _, err := r.Read(buf, 0, &to); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	benchmark(b, func(v *Order) func() {
		buf, err := v.AppendJSON(nil, thrift.JSON{})
		if err != nil {
			b.Fatal(err)
		}
		return func() { buf, _ = v.AppendJSON(buf[:0], thrift.JSON{}) }
	})
}

func BenchmarkReadJSON(b *testing.B) {
	benchmark(b, func(v *Order) func() {
		buf, err := v.AppendJSON(nil, thrift.JSON{})
		if err != nil {
			b.Fatal(err)
		}
		var r thrift.Reader
		return func() {
			if err := new(Order).ReadJSON(&r, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// plainOrder is Order without its methods, so that encoding/json uses reflection for it.
type plainOrder struct {
	ID       int64             `json:"id"`
	Paid     bool              `json:"paid"`
	Small    int8              `json:"small"`
	Medium   int16             `json:"medium"`
	Quantity *int32            `json:"quantity,omitempty"`
	Price    *float64          `json:"price,omitempty"`
	Key      string            `json:"key"`
	Name     *string           `json:"name,omitempty"`
	Payload  []byte            `json:"payload,omitempty"`
	Status   any               `json:"status,omitempty"`
	Codes    []int64           `json:"codes"`
	Tags     []string          `json:"tags"`
	Attrs    map[string]string `json:"attrs"`
	Parent   *plainOrder       `json:"parent,omitempty"`
	Lines    []plainOrder      `json:"lines"`
	States   map[int32][]any   `json:"states"`
}

func BenchmarkJSONByReflection(b *testing.B) {
	benchmark(b, func(v *Order) func() {
		buf, _ := v.AppendJSON(nil, thrift.JSON{})
		p := new(plainOrder)
		if err := json.Unmarshal(buf, p); err != nil {
			b.Fatal(err)
		}
		return func() { _, _ = json.Marshal(p) }
	})
}

func BenchmarkReadJSONByReflection(b *testing.B) {
	benchmark(b, func(v *Order) func() {
		buf, _ := v.AppendJSON(nil, thrift.JSON{})
		return func() {
			if err := json.Unmarshal(buf, new(plainOrder)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
