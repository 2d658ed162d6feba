package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// linkEvents are the latest events of the connections to the nodes. All methods are safe for
// concurrent use.
type linkEvents struct {
	mu sync.Mutex
	// Guarded by mu.
	latest map[string]redis.Event // by address
}

// note is Options.OnEvent.
func (l *linkEvents) note(e redis.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest[e.Addr] = e
}

// failed returns why there is no connection to a node, or nil if no attempt has failed.
func (l *linkEvents) failed(addr string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.latest[addr]; e.Kind != redis.Connected {
		return e.Err
	}
	return nil
}

// await waits until there is a connection to each node, or an attempt has failed, for a little longer
// than an attempt may take.
func (l *linkEvents) await(ctx context.Context, client *redis.Client, attempt time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, attempt+attempt/4)
	defer cancel()
	for !l.settled(client) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (l *linkEvents) settled(client *redis.Client) bool {
	for _, n := range client.Nodes() {
		if n.Stats.Connected == 0 && l.failed(n.Addr) == nil {
			return false
		}
	}
	return true
}

// clusterSurvey queries the nodes of a cluster.
type clusterSurvey struct {
	client *redis.Client
	links  *linkEvents
	pings  int
	within time.Duration // of the whole survey, for messages
}

// The numbers of nodes that are queried concurrently: few for round trips, because concurrent
// queries delay one another.
const (
	measuredAtOnce = 4
	askedAtOnce    = 8
)

// report queries all nodes.
func (s *clusterSurvey) report(ctx context.Context) *clusterReport {
	t, _ := s.client.Topology()
	r := &clusterReport{Shards: []shardReport{}, Nodes: []nodeReport{}, Uncovered: []string{}, Moving: []movingReport{}, Client: []string{}, Problems: []string{}}
	r.take(t)
	s.each(ctx, r, measuredAtOnce, func(n *nodeReport, client *redis.Client) { s.measure(ctx, n, client) })
	s.each(ctx, r, askedAtOnce, func(n *nodeReport, client *redis.Client) { s.ask(ctx, n, client) })
	r.lags()
	var mu sync.Mutex
	views := newViews(t)
	s.each(ctx, r, askedAtOnce, func(n *nodeReport, _ *redis.Client) {
		view, err := s.client.AskTopology(ctx, n.Addr)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			views.silent(n.Addr, s.text(ctx, err))
			return
		}
		n.Epoch = view.Epoch
		views.add(view)
	})
	r.Views, r.Moving = views.report()
	return r
}

// each calls f for each node that can be reached, for some at the same time.
func (s *clusterSurvey) each(ctx context.Context, r *clusterReport, atOnce int, f func(*nodeReport, *redis.Client)) {
	places := make(chan struct{}, atOnce)
	var asking sync.WaitGroup
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if n.Error != "" {
			continue
		}
		client, err := s.client.Node(n.Addr)
		if err != nil {
			s.unreachable(ctx, n, err) // it has left the cluster
			continue
		}
		places <- struct{}{}
		// Ends when the node has answered or the context has ended; each waits for it.
		asking.Go(func() {
			f(n, client)
			<-places
		})
	}
	asking.Wait()
}

// text returns an error for the terminal.
func (s *clusterSurvey) text(ctx context.Context, err error) string {
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		return "no answer within the " + s.within.String() + " of --timeout"
	}
	return printable(err.Error(), maxErrorText)
}

// unreachable records that there is no connection to a node: because the latest attempt failed, or
// else because of err.
func (s *clusterSurvey) unreachable(ctx context.Context, n *nodeReport, err error) {
	if failed := s.links.failed(n.Addr); failed != nil {
		err = failed
	}
	n.State, n.Error = "unreachable", s.text(ctx, err)
}

// measure measures round trips. An error reply of the server is a round trip, too.
func (s *clusterSurvey) measure(ctx context.Context, n *nodeReport, client *redis.Client) {
	var times []time.Duration
	for range s.pings {
		begun := time.Now()
		err := client.Ping(ctx)
		took := time.Since(begun)
		answer, answered := errors.AsType[*redis.ServerError](err)
		if err != nil && !answered {
			s.unreachable(ctx, n, err)
			return
		}
		if answered && answer.Code == "LOADING" {
			n.State = "loading"
		}
		times = append(times, took)
	}
	n.RoundTrip = trips(times)
}

// ask queries a node about itself. Information that it does not permit is omitted.
func (s *clusterSurvey) ask(ctx context.Context, n *nodeReport, client *redis.Client) {
	if info, err := client.Info(ctx, "server"); err == nil {
		n.Version = version(info)
	}
	if info, err := client.Info(ctx, "replication"); err == nil {
		n.ownRole = infoField(info, "role")
		if n.ownRole == "slave" {
			n.Link = "down"
			if infoField(info, "master_link_status") == "up" {
				n.Link = "up"
			}
			n.Offset = number(infoField(info, "slave_repl_offset"))
		} else {
			n.Offset = number(infoField(info, "master_repl_offset"))
		}
	}
	var settings map[string]string
	if err := client.Do(ctx, &settings, redis.Cmd("CONFIG", "GET", "cluster-require-full-coverage")); err == nil {
		if setting := settings["cluster-require-full-coverage"]; setting == "yes" || setting == "no" {
			n.Coverage = setting
		}
	}
	switch {
	case n.failed:
		n.State = "failed"
	case n.State == "ok" && n.Link == "down":
		n.State = "link down"
	}
}

// version returns the name and version of a server. Valkey also claims to be a Redis.
func version(info string) string {
	if v := infoField(info, "valkey_version"); v != "" {
		return printable("valkey "+v, maxWord)
	}
	return printable(infoField(info, "redis_version"), maxWord)
}

// infoField returns a field of a reply to INFO, or "".
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimRight(value, "\r\n")
		}
	}
	return ""
}

func number(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
