package sentinel

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// list encodes an array of strings and lists.
func list(elems ...any) []byte {
	b := resp.AppendArrayHeader(nil, len(elems))
	for _, e := range elems {
		switch e := e.(type) {
		case string:
			b = resp.AppendBulkString(b, e)
		case []byte:
			b = append(b, e...)
		}
	}
	return b
}

var (
	errRefused = errors.New("connection refused")
	errHungUp  = errors.New("connection lost")
)

// says contains what a Sentinel answers.
type says struct {
	master string // its port at 10.0.0.1
	epoch  int    // 0 if the Sentinel does not know epochs
	others []string
	// replicas are the ports of replicas, with the flags of each; "no link" means that it has no
	// connection to its master.
	replicas map[string]string
	err      error
	hangs    bool
}

func (s says) frames() [][]byte {
	master := []byte("-ERR unknown subcommand\r\n")
	if s.epoch > 0 {
		master = list("name", "m", "ip", "10.0.0.9", "config-epoch", strconv.Itoa(s.epoch))
	}
	var others []any
	for _, other := range s.others {
		others = append(others, list("name", "id"+other, "ip", "10.0.0.2", "port", other, "runid", "id"+other))
	}
	return [][]byte{master, list("10.0.0.1", s.master), master, list(others...)}
}

// replicaFrame returns the reply to SENTINEL REPLICAS.
func (s says) replicaFrame() []byte {
	var all []any
	for port, flags := range s.replicas {
		link := "ok"
		if flags == "no link" {
			flags, link = "slave", "err"
		}
		all = append(all, list("ip", "10.0.0.1", "port", port, "flags", flags, "master-link-status", link))
	}
	return list(all...)
}

// fake simulates Sentinels at 10.0.0.2 and servers at 10.0.0.1.
type fake struct {
	mu sync.Mutex
	// Guarded by mu.
	sentinels map[string]says   // by port
	roles     map[string]string // by port; if empty, the server refuses connections; if "hangs", it does not answer
	listening map[string]chan [2]string
	asked     []time.Time // times of queries to Sentinels
	heard     []string    // ports of Sentinels that were listened to
	roled     int         // number of ROLE commands
	applied   []string    // ports of masters, without repetitions
	replicas  string      // ports of the replicas that were applied last
	failures  int
}

func newFake() *fake {
	return &fake{sentinels: make(map[string]says), roles: make(map[string]string), listening: make(map[string]chan [2]string)}
}

func portIn(addr string) string { return addr[len(addr)-1:] }

func (f *fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fake) Ask(ctx context.Context, addr string, commands [][]string) ([][]byte, error) {
	f.mu.Lock()
	s, known := f.sentinels[portIn(addr)]
	f.asked = append(f.asked, time.Now())
	f.mu.Unlock()
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !known {
		s.err = errRefused
	}
	frames := s.frames()
	if len(commands) > len(frames) {
		frames = append(frames, s.replicaFrame())
	}
	return frames, s.err
}

func (f *fake) Role(ctx context.Context, addr string) ([]byte, error) {
	f.mu.Lock()
	role := f.roles[portIn(addr)]
	f.roled++
	f.mu.Unlock()
	switch role {
	case "":
		return nil, errRefused
	case "hangs":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return list(role, "0"), nil
}

func (f *fake) Listen(ctx context.Context, addr string, channels []string, ready func(), heard func(channel, payload string)) error {
	port := portIn(addr)
	f.mu.Lock()
	s, known := f.sentinels[port]
	f.heard = append(f.heard, port)
	if !known || s.err != nil {
		f.mu.Unlock()
		return errRefused
	}
	messages := make(chan [2]string, 100)
	f.listening[port] = messages
	f.mu.Unlock()
	defer f.set(func() {
		if f.listening[port] == messages {
			delete(f.listening, port)
		}
	})
	ready()
	for {
		select {
		case m := <-messages:
			if m[0] == "" {
				return errHungUp
			}
			heard(m[0], m[1])
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// publish lets a Sentinel publish a message, or hang up if channel is empty.
func (f *fake) publish(port, channel, payload string) {
	f.mu.Lock()
	messages := f.listening[port]
	f.mu.Unlock()
	if messages != nil {
		messages <- [2]string{channel, payload}
	}
}

// publishAll lets all Sentinels announce another master.
func (f *fake) publishAll() {
	for _, port := range []string{"1", "2", "3"} {
		f.publish(port, "+switch-master", "m 10.0.0.1 8 10.0.0.1 9")
	}
}

func (f *fake) apply(t *cluster.Topology) {
	f.set(func() {
		if port := portIn(t.Nodes[t.Ranges[0].Node].Addr); len(f.applied) == 0 || f.applied[len(f.applied)-1] != port {
			f.applied = append(f.applied, port)
		}
		f.replicas = ""
		for _, n := range t.Nodes {
			if n.Replica {
				f.replicas += portIn(n.Addr)
			}
		}
	})
}

// trio makes three Sentinels name a master.
func (f *fake) trio(master string, epoch int) {
	f.set(func() {
		ports := []string{"1", "2", "3"}
		for _, port := range ports {
			others := slices.DeleteFunc(slices.Clone(ports), func(p string) bool { return p == port })
			f.sentinels[port] = says{master: master, epoch: epoch, others: others}
		}
	})
}

// inBubble runs a test of a refresher in virtual time, and closes the refresher at its end.
func inBubble(t *testing.T, f *fake, config Config, test func(t *testing.T, r *Refresher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		config.Name, config.Asker, config.Apply = "m", f, f.apply
		config.Failed = func(error) { f.set(func() { f.failures++ }) }
		if config.Addresses == nil {
			config.Addresses = &cluster.Addresses{Seeds: []string{"10.0.0.2:1", "10.0.0.2:2", "10.0.0.2:3"}}
		}
		r := New(config)
		r.Start()
		defer r.Close()
		test(t, r)
	})
}

// wants fails the test unless the masters so far were at the given ports.
func (f *fake) wants(t *testing.T, ports ...string) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.applied, ports) {
		t.Errorf("the masters were at %v, want %v", f.applied, ports)
	}
}

func (f *fake) asks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// listened returns the ports of the Sentinels that were listened to, in order.
func (f *fake) listened() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.heard)
}

func (f *fake) listeners() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.listening)
}

func (f *fake) roleAsks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.roled
}

func (f *fake) failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures
}
