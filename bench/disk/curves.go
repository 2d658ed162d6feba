package main

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// curve is the prefix of the names of the scenarios in the article's tables.
const curve = "curve/"

// Subjects of the curves: ours with one processor and with two, and the article's
// service in the same mode with two.
const (
	oursOnOne = "slipstream-1"
	article   = "article"
)

// curveConnections are the numbers of connections in the article.
var curveConnections = []int{1, 4, 16, 64, 256, 1024, 4096, 16384}

// A mode says where the documents of a curve come from.
type mode struct {
	name          string // in the scenarios
	ours, article string // programs in the catalog
	status        string // Cache-Status of ours; if empty, it is not checked
}

var modes = []mode{
	{"direct", directOurs, directArticle, ""},
	{"bbolt", load.Ours, articleBBolt, diskStatus},
	{"memory", memoryOurs, memoryArticle, memoryStatus},
}

func (h *harness) curves() (all []load.Scenario) {
	for _, m := range modes {
		for _, connections := range curveConnections {
			all = append(all, h.curve(m, connections))
		}
	}
	return all
}

func (h *harness) curve(m mode, connections int) load.Scenario {
	sc := load.Scenario{Name: fmt.Sprintf("%s%s/%d", curve, m.name, connections), Primary: load.RPS, Rounds: h.options.Fixed(3)}
	for _, s := range []struct {
		name, program string
		processors    int
	}{{load.Ours, m.ours, 2}, {oursOnOne, m.ours, 1}, {article, m.article, 2}} {
		status := m.status
		if s.name == article {
			status = ""
		}
		sc.Subjects = append(sc.Subjects, load.Subject{Name: s.name, Variant: s.name == oursOnOne, Run: func(ctx context.Context, round int) (load.Sample, error) {
			p, err := h.program(ctx, s.program)
			if err != nil {
				return load.Sample{}, err
			}
			hit := h.hit(connections, round, status, fmt.Sprintf("GOMAXPROCS=%d", s.processors))
			switch m.name {
			case "direct":
				h.overDatabase(&hit)
			case "memory":
				hit.Ask = allowing(hit.Ask)
			}
			return hit.Run(ctx, p)
		}})
	}
	return sc
}

// allowing permits the first pass to find documents that are not in memory yet.
func allowing(ask func(*loadproc.Spec)) func(*loadproc.Spec) {
	return func(s *loadproc.Spec) {
		ask(s)
		s.Strays = true
	}
}

// overDatabase requests no documents before the window, because almost none may be in memory, and
// compares some with the database.
func (h *harness) overDatabase(hit *subject.Hit) {
	ask := hit.Ask
	hit.Ask = func(s *loadproc.Spec) {
		ask(s)
		s.Learn, s.Depts = false, false
	}
	hit.Prove = func(ctx context.Context, server *subject.Server) error {
		url, err := h.postgres(ctx)
		if err != nil {
			return err
		}
		return pgdepts.Verify(ctx, url, h.options.documents, pgdepts.OverHTTP(server.Address), hit.Seed)
	}
}
