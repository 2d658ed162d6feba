package main

import (
	"testing"

	"github.com/slipstream-go/slipstream/internal/load"
)

// BenchmarkHandler is for profiles of one subject:
//
//	go test -bench Handler/step-all -cpuprofile cpu.pprof ./handler
func BenchmarkHandler(b *testing.B) {
	names := []string{load.Ours, gojaySubject, jsonSubject}
	for _, s := range steps {
		names = append(names, s.name)
	}
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			handler, fields, end, err := open(name)
			if err != nil {
				b.Fatal(err)
			}
			defer end()
			questions, err := verified(handler, fields, expected(name))
			if err != nil {
				b.Fatal(err)
			}
			w := newDiscard(isStep(name))
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				if err := w.ask(handler, &questions[n%len(questions)]); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}
