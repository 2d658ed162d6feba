package httpfront

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// BenchmarkPipelinedHits requests 16 of 1,000 documents of 1.7 KB at a time, as the scenario
// pipelined-16 of the suite http does. An operation is one document; 16 of them share the
// system calls, so that the profile shows the cost of the frontend itself.
func BenchmarkPipelinedHits(b *testing.B) {
	const documents, at = 1000, 16
	f := newFixture(b, jsonOrigin)
	s := listen(b, f, way{backend: loop.Epoll}.config(Config{}))
	c := dial(b, s)
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Hour))
	var questions [documents / at][]byte
	var sizes [documents / at]int
	for i := range questions {
		for j := range at {
			questions[i] = append(questions[i], requestText("GET", "/depts/"+strconv.Itoa(1200+i*at+j))...)
		}
		for range 2 { // loads them, and then sizes the answers like all later ones
			c.Write(questions[i])
			var answers bytes.Buffer
			r := bufio.NewReader(io.TeeReader(c, &answers))
			for range at {
				if _, err := readAnswer(r, "GET"); err != nil {
					b.Fatal(err)
				}
			}
			sizes[i] = answers.Len()
		}
	}
	buffer := make([]byte, 1<<20)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += at {
		k := i / at % len(questions)
		if _, err := c.Write(questions[k]); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buffer[:sizes[k]]); err != nil {
			b.Fatal(err)
		}
	}
}
