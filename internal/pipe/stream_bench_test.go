package pipe

import (
	"sync"
	"testing"
)

// BenchmarkStream sends a frame to the server and receives its echo, on one stream and on many. ns/op is the
// time of one frame in both directions.
func BenchmarkStream(b *testing.B) {
	for name, streams := range map[string]int{"1": 1, "64": 64} {
		b.Run(name, func(b *testing.B) {
			k := startToy(b, &toyServer{tickets: true, network: "unix"})
			e := k.engine(func(c *Config) { c.Traits.Streams = toyStreamTraits() })
			frame := appendToyTicket(nil, "dxxxxxxxxxxxxxxxx")
			writes := e.Snapshot().Writes
			b.ReportAllocs()
			var wg sync.WaitGroup
			for i := range streams {
				c := e.Acquire()
				c.Frame = appendToyTicket(c.Frame[:0], "dopen")
				st, err := e.OpenStream(b.Context(), c)
				if err != nil {
					b.Fatal(err)
				}
				defer st.Close()
				if _, err := st.Recv(b.Context()); err != nil {
					b.Fatal(err)
				}
				wg.Go(func() {
					for n := i; n < b.N; n += streams {
						c := e.Acquire()
						c.Frame = append(c.Frame[:0], frame...)
						if err := st.Send(b.Context(), c); err != nil {
							b.Error(err)
							return
						}
						if _, err := st.Recv(b.Context()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(e.Snapshot().Writes-writes)/float64(b.N), "writes/op")
		})
	}
}
