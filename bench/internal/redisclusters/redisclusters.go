// Package redisclusters starts Redis Clusters for benchmarks: it uses the clusters of the project's
// tests (internal/testkit/rediscluster) outside a test.
package redisclusters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
)

// A Cluster is a running Redis Cluster. Stop it.
type Cluster struct {
	// Immutable after Start.
	cluster *rediscluster.Cluster
	standIn *standIn
}

// nodeTimeout is long enough that servers that lack CPU time are not considered dead.
const nodeTimeout = 30 * time.Second

// Start starts a cluster of the given number of masters without replicas, for measurements in which
// no node fails. See [StartWith].
func Start(ctx context.Context, scratch string, masters int) (*Cluster, error) {
	return StartWith(ctx, scratch, rediscluster.Options{
		Masters: masters, NodeTimeout: nodeTimeout, Args: []string{"--maxclients", "10000"},
	})
}

// StartWith starts a cluster whose nodes have directories below scratch. If ctx ends before they
// are ready, it returns an error. On Linux the nodes are killed when this process ends.
func StartWith(ctx context.Context, scratch string, o rediscluster.Options) (*Cluster, error) {
	c := &Cluster{standIn: &standIn{ctx: ctx, scratch: scratch}}
	err := c.Operate(func(t testing.TB, _ *rediscluster.Cluster) { c.cluster = rediscluster.Start(t, o) })
	if err := errors.Join(ctx.Err(), err); err != nil {
		c.standIn.cleanUp()
		return nil, fmt.Errorf("redis cluster (make prepare installs the servers): %w", err)
	}
	return c, nil
}

// Operate calls f to operate the cluster, and waits for it. If f fails as a test, Operate returns
// the failure.
func (c *Cluster) Operate(f func(t testing.TB, cluster *rediscluster.Cluster)) error {
	ended := make(chan struct{})
	// Ends with f, waited for below. It needs its own goroutine, because a fatal failure of a test
	// ends the goroutine that reports it.
	go func() {
		defer close(ended)
		f(c.standIn, c.cluster)
	}()
	<-ended
	return c.standIn.err()
}

// Addresses returns the addresses of the masters.
func (c *Cluster) Addresses() []string { return c.cluster.Addrs() }

// PIDs returns the processes of the masters.
func (c *Cluster) PIDs() []int {
	var pids []int
	for _, n := range c.cluster.Nodes() {
		pids = append(pids, n.PID())
	}
	return pids
}

// Stop ends the nodes. It returns an error if one of them had ended prematurely.
func (c *Cluster) Stop() error {
	var errs []error
	for _, n := range c.cluster.Nodes() {
		if !n.Running() {
			errs = append(errs, fmt.Errorf("%s had ended before it was stopped: %s", n, n.Log()))
		}
	}
	c.standIn.cleanUp()
	return errors.Join(append(errs, c.standIn.err())...)
}

// Discard ends the nodes, some of which may have already ended.
func (c *Cluster) Discard() { c.standIn.cleanUp() }

// A standIn replaces the test to which the cluster belongs.
type standIn struct {
	testing.TB // nil, because rediscluster calls only the methods below

	// Immutable.
	ctx     context.Context
	scratch string

	// Guarded by mu.
	mu       sync.Mutex
	cleanups []func()
	failures []string
}

// err returns what has failed.
func (s *standIn) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) == 0 {
		return nil
	}
	return errors.New(strings.Join(s.failures, "\n"))
}

// cleanUp runs the cleanup functions, as at the end of a test.
func (s *standIn) cleanUp() {
	for {
		s.mu.Lock()
		n := len(s.cleanups)
		if n == 0 {
			s.mu.Unlock()
			return
		}
		last := s.cleanups[n-1]
		s.cleanups = s.cleanups[:n-1]
		s.mu.Unlock()
		last()
	}
}

func (s *standIn) Helper() {}

func (s *standIn) Logf(string, ...any) {}

func (s *standIn) Context() context.Context { return s.ctx }

func (s *standIn) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// TempDir returns a directory that is removed with scratch.
func (s *standIn) TempDir() string {
	dir, err := os.MkdirTemp(s.scratch, "node-")
	if err != nil {
		s.Fatal(err)
	}
	return dir
}

func (s *standIn) Failed() bool { return s.err() != nil }

func (s *standIn) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func (s *standIn) Fatal(args ...any) {
	s.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (s *standIn) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}
