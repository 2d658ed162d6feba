package bulk

import (
	"encoding/binary"
	"fmt"
	"testing"
)

// The benchmarks report bytes of payload. Buffers begin 5 bytes after a multiple of 64, like the
// elements of a list after its header in an aligned buffer.

// benchmark measures every implementation with lists of several lengths. "each" is a plain loop in
// the benchmark.
func benchmark[E any](b *testing.B, width int, kernel, each func(buf []byte, elements []E)) {
	for _, n := range []int{1, 2, 4, 7, 8, 16, 64, 1024, 131072, 2 << 20} {
		buf := aligned(8 + n*width)[5 : 5+n*width]
		elements := make([]E, n)
		run := func(name string, work func(buf []byte, elements []E)) {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n * width))
				for b.Loop() {
					work(buf, elements)
				}
			})
		}
		before := chosen
		for _, chosen = range available() {
			run(names[chosen], kernel)
		}
		chosen = before
		run("each", each)
	}
}

func BenchmarkPutI64(b *testing.B) {
	benchmark(b, 8, func(buf []byte, list []int64) {
		if !PutFewI64(buf, list) {
			PutI64(buf, list)
		}
	}, func(buf []byte, list []int64) {
		for i, v := range list {
			binary.BigEndian.PutUint64(buf[8*i:], uint64(v))
		}
	})
}

func BenchmarkGetI64(b *testing.B) {
	benchmark(b, 8, func(buf []byte, list []int64) {
		if !GetFewI64(list, buf) {
			GetI64(list, buf)
		}
	}, func(buf []byte, list []int64) {
		for i := range list {
			list[i] = int64(binary.BigEndian.Uint64(buf[8*i:]))
		}
	})
}

func BenchmarkPutI32(b *testing.B) {
	benchmark(b, 4, func(buf []byte, list []int32) {
		if !PutFewI32(buf, list) {
			PutI32(buf, list)
		}
	}, func(buf []byte, list []int32) {
		for i, v := range list {
			binary.BigEndian.PutUint32(buf[4*i:], uint32(v))
		}
	})
}

func BenchmarkGetI32(b *testing.B) {
	benchmark(b, 4, func(buf []byte, list []int32) {
		if !GetFewI32(list, buf) {
			GetI32(list, buf)
		}
	}, func(buf []byte, list []int32) {
		for i := range list {
			list[i] = int32(binary.BigEndian.Uint32(buf[4*i:]))
		}
	})
}

func BenchmarkPutI16(b *testing.B) {
	benchmark(b, 2, func(buf []byte, list []int16) {
		if !PutFewI16(buf, list) {
			PutI16(buf, list)
		}
	}, func(buf []byte, list []int16) {
		for i, v := range list {
			binary.BigEndian.PutUint16(buf[2*i:], uint16(v))
		}
	})
}

func BenchmarkGetBool(b *testing.B) {
	benchmark(b, 1, func(buf []byte, list []bool) {
		if !GetFewBool(list, buf) {
			GetBool(list, buf)
		}
	}, func(buf []byte, list []bool) {
		for i := range list {
			list[i] = buf[i] != 0
		}
	})
}
