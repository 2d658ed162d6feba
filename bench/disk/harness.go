package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/pgcluster"
	"github.com/slipstream-go/slipstream/bench/internal/pgdepts"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// articleBBolt is the article's service over a bbolt file.
const articleBBolt = "article-bbolt"

// Names of programs in the catalog, in addition to ours with a filled disk and articleBBolt.
const (
	memoryOurs    = "slipstream in memory"
	memoryArticle = "article in memory"
	directOurs    = "slipstream over PostgreSQL"
	directArticle = "article over PostgreSQL"
)

// diskStatus is the Cache-Status of an answer from the disk tier.
const diskStatus = "slipstream; hit; detail=disk"

// memoryStatus is the Cache-Status of an answer from memory.
const memoryStatus = "slipstream; hit"

const (
	// diskSize is the budget of the disk tier: several times the documents.
	diskSize = "2GiB"
	// diskGrace is how long a gateway may take to write what is queued.
	diskGrace = time.Minute
	// articlePatience is how long the article's service may take to generate or write all documents
	// before it serves.
	articlePatience = 5 * time.Minute
	// learners is the number of connections of a pass over all documents.
	learners = 32
	// smallMemory is the minimum budget of the memory tier, which holds almost none of 200,000
	// uniformly chosen documents.
	smallMemory = "1MiB"
	// The numbers of connections to PostgreSQL with which each side was fastest in suite origin.
	ourConnections     = 4
	articleConnections = 16
)

// A harness builds the subjects, fills their files and measures them.
type harness struct {
	// Immutable after newHarness.
	options  options
	place    command.Place
	progress io.Writer
	window   time.Duration
	warmUp   time.Duration
	catalog  *subject.Catalog
	binary   func() (string, error) // builds our command once

	// Owned by the goroutine that runs the suite.
	database string             // SQLite file with all documents, once it exists
	cluster  *pgcluster.Cluster // the same in PostgreSQL
	fills    map[string][]fillDetails
}

func newHarness(o options, p command.Place, progress io.Writer) *harness {
	h := &harness{
		options: o, place: p, progress: progress, window: o.Window(2*time.Second, 500*time.Millisecond), warmUp: time.Second,
		fills: map[string][]fillDetails{},
	}
	if o.Quick {
		h.warmUp = 200 * time.Millisecond
	}
	h.binary = sync.OnceValues(func() (string, error) {
		binary := filepath.Join(p.Scratch, "slipstream")
		return binary, subject.BuildSlipstream(context.Background(), filepath.Dir(p.Module), binary)
	})
	h.catalog = subject.NewCatalog(suiteName, progress, map[string]func(context.Context) (subject.Program, error){
		load.Ours:     func(ctx context.Context) (subject.Program, error) { return h.filledOurs(ctx) },
		articleBBolt:  func(ctx context.Context) (subject.Program, error) { return h.filledArticle(ctx) },
		memoryOurs:    func(ctx context.Context) (subject.Program, error) { return h.gateway(ctx, "memory", "4GiB") },
		memoryArticle: func(ctx context.Context) (subject.Program, error) { return h.articleInMemory(ctx) },
		directOurs:    func(ctx context.Context) (subject.Program, error) { return h.oursOverPostgres(ctx) },
		directArticle: func(ctx context.Context) (subject.Program, error) { return h.articleOverPostgres(ctx) },
	})
	return h
}

// Close implements [command.Harness].
func (h *harness) Close() error {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.Close()
}

func (h *harness) printf(format string, args ...any) {
	fmt.Fprintf(h.progress, suiteName+": "+format+"\n", args...)
}

// program returns the program of a subject. The control is the same program as ours.
func (h *harness) program(ctx context.Context, name string) (subject.Program, error) {
	if name == load.Control {
		name = load.Ours
	}
	return h.catalog.Program(ctx, name)
}

// gateway returns ours over the SQLite database of all documents, which is created on first use,
// with its files in a directory of that name.
func (h *harness) gateway(ctx context.Context, name, memory string) (*subject.Slipstream, error) {
	binary, err := h.binary()
	if err != nil {
		return nil, err
	}
	if h.database == "" {
		h.printf("writing %d departments", h.options.documents)
		path := filepath.Join(h.place.Scratch, "depts.db")
		if err := depts.WriteSQLite(path, h.options.documents); err != nil {
			return nil, err
		}
		h.database = path
	}
	dir := filepath.Join(h.place.Scratch, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return subject.OverSQLite(ctx, binary, dir, h.database, "", memory)
}

// onDisk returns ours with a disk tier in a directory, whose documents stay out of
// memory.
func (h *harness) onDisk(ctx context.Context, name, tier string) (*subject.Slipstream, error) {
	bare, err := h.gateway(ctx, name, "64MiB")
	if err != nil {
		return nil, err
	}
	return bare.With(subject.Extra{
		Tiers: fmt.Sprintf("disk: { path: %q, size: %s, promote: false }", filepath.ToSlash(tier), diskSize),
		Grace: diskGrace,
	})
}

// buildArticle compiles one of the rebuilds into a separate directory: some have the
// same name.
func (h *harness) buildArticle(ctx context.Context, suite, name string) (*subject.Rival, error) {
	r, err := subject.BuildRival(ctx, h.place.Module, filepath.Join(h.place.Scratch, "of-"+suite), suite, name)
	if err != nil {
		return nil, err
	}
	r.Within = articlePatience
	return r, nil
}

func (h *harness) articleInMemory(ctx context.Context) (subject.Program, error) {
	r, err := h.buildArticle(ctx, "gateway", "article")
	if err != nil {
		return nil, err
	}
	return r.With("-documents", fmt.Sprint(h.options.documents)), nil
}

// postgres creates the database of suite origin, as large as the others in this suite.
func (h *harness) postgres(ctx context.Context) (string, error) {
	if h.cluster == nil {
		var err error
		if h.cluster, err = pgdepts.New(ctx, h.options.documents, h.options.Quick, h.printf); err != nil {
			return "", err
		}
	}
	return h.cluster.URL(), nil
}

func (h *harness) oursOverPostgres(ctx context.Context) (subject.Program, error) {
	binary, err := h.binary()
	if err != nil {
		return nil, err
	}
	url, err := h.postgres(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(h.place.Scratch, "direct")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := subject.OverPostgres(binary, dir, subject.Postgres{URL: url, Memory: smallMemory, Concurrency: ourConnections})
	return p, p.DB(ctx, "apply")
}

func (h *harness) articleOverPostgres(ctx context.Context) (subject.Program, error) {
	url, err := h.postgres(ctx)
	if err != nil {
		return nil, err
	}
	r, err := h.buildArticle(ctx, "origin", "article")
	if err != nil {
		return nil, err
	}
	return r.With("-url", url, "-connections", fmt.Sprint(articleConnections)), nil
}

// Check implements [command.Harness].
func (h *harness) Check(w io.Writer, rows []load.Row) error {
	checkHits(w, rows)
	checkMany(w, rows)
	checkFills(w, h.fills)
	return command.Failures(rows)
}

// stopping joins an earlier error with the error of stopping a server.
func stopping(server *subject.Server, err *error) { *err = errors.Join(*err, server.Stop()) }
