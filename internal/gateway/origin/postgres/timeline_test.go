package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A former primary that comes back and accepts writes is never followed: not while the
// gateway runs, and not after a restart if a store has the higher timeline. Without a
// store it is.
func TestLowerTimelineIsNeverFollowed(t *testing.T) {
	testkit.NoLeaks(t)
	old := startServer(t)
	d := old.database(t, streamedSchema)
	d.apply(t, Config{}, streamedResource())
	d.live(t, cache.Position{}).end() // which gives the history its incarnation
	standby := old.StartStandby(t, 0)
	both := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable", old.Port, standby.Port, d.name)
	second := &database{name: d.name, url: strings.Replace(standby.URL, "/postgres?", "/"+d.name+"?", 1)}
	live := func(url string, p cache.Position) *life {
		t.Helper()
		began := time.Now()
		clock := func() time.Duration { return time.Since(began) }
		l := &life{streamed: &streamed{T: t, sink: &recorder{clock: clock, promises: map[cache.ResourceID]string{}}}}
		l.origin = openOrigin(t, Config{URL: url, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}, streamedResource())
		l.storing = &storing{recorder: l.sink}
		l.storing.wait(p)
		return l
	}
	l := live(both, cache.Position{})
	l.runInto(l.sink.clock, l.storing)
	l.expect("*")

	// The old primary loses power, and the standby takes over.
	standby.CatchUp(t, old.Postgres)
	old.Crash(t)
	standby.Promote(t)
	l.voidedFor("from timeline 00000001 to 00000002")
	l.advance()
	l.sink.forget()
	// It comes back, first in the URL, and accepts writes.
	old.Restart(t)
	second.conn = second.connect(t, "")
	for i := 1; i <= 3; i++ {
		// Each time the stream has to choose a host again.
		second.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slipstream' AND query LIKE '%complete_from%'",
			fmt.Sprintf("UPDATE dept SET dname = 'new' WHERE deptno = %d", i))
		l.expect(fmt.Sprint(i))
		if batch, err := l.origin.Load(t.Context(), 0, []string{fmt.Sprint(i)}); err == nil && !strings.Contains(string(batch.Docs[0].Body), "new") {
			t.Errorf("loaded %s, which was read from the old primary", batch.Docs[0].Body)
		}
	}
	if got := len(l.sink.voided()); got != 1 {
		t.Errorf("voided %d times: %q", got, l.sink.voided())
	}
	d.conn = d.connect(t, "")
	if got := d.text(t, "SELECT count(*) FROM slipstream.incarnation"); got != "0" {
		t.Errorf("the old primary has %s incarnations: renew was called there", got)
	}
	p := l.end()

	// After a restart only the old primary answers, as one of two hosts or behind the
	// address that the URL names.
	standby.Stop(t)
	for _, url := range []string{both, d.url} {
		refusesLowerTimeline(t, live(url, p), old.Port)
	}

	// A store whose higher timeline was removed accepts the lower one.
	l = live(both, cache.Position{})
	l.runInto(l.sink.clock, l.storing)
	d.exec(t, "UPDATE dept SET dname = 'old' WHERE deptno = 4")
	l.expect("4", "*")
	l.end()
}

// refusesLowerTimeline runs a gateway that knows timeline 2 over a server on timeline 1.
func refusesLowerTimeline(t *testing.T, l *life, port int) {
	t.Helper()
	l.start(l.sink.clock, l.storing)
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, want := range []string{"timeline 1", "timeline 2", fmt.Sprint("127.0.0.1:", port), "slipstream disk forget"} {
			if trouble := l.stream.Stats().Trouble; !strings.Contains(trouble, want) {
				return fmt.Errorf("trouble %q, want %q in it", trouble, want)
			}
		}
		return nil
	})
	if _, err := l.origin.Load(t.Context(), 0, []string{"1"}); !errors.Is(err, errOldPrimary) {
		t.Errorf("load from the old primary: %v", err)
	}
	l.storing.mu.Lock()
	if !l.storing.waits || l.storing.discarded || l.sink.advanced > 0 {
		t.Errorf("the old primary was followed: waits %t, discarded %t, advanced %d times", l.storing.waits, l.storing.discarded, l.sink.advanced)
	}
	l.storing.mu.Unlock()
	l.stop()
	_ = l.origin.Close() // again at the end of the test
}

// Hosts are watched over connections that stay open.
func TestHostsAreWatchedOverOneConnectionEach(t *testing.T) {
	testkit.NoLeaks(t)
	server := startServer(t)
	d := server.database(t, streamedSchema)
	d.apply(t, Config{}, streamedResource())
	standby := server.StartStandby(t, 0)
	began := time.Now()
	clock := func() time.Duration { return time.Since(began) }
	s := &streamed{T: t, sink: &recorder{clock: clock, promises: map[cache.ResourceID]string{}}}
	s.origin = openOrigin(t, Config{URL: fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable", standby.Port, server.Port, d.name)}, streamedResource())
	s.runInto(clock, s.sink)
	sessions := func(at *testkit.Postgres) string {
		return at.PSQL(t, "SELECT string_agg(pid || ' ' || backend_start, ', ' ORDER BY pid) FROM pg_stat_activity WHERE application_name = 'slipstream'")
	}
	first, other := sessions(server.Postgres), sessions(standby)
	if strings.TrimSpace(other) == "" || strings.Contains(other, ",") {
		t.Errorf("sessions on the standby: %s, want one", other)
	}
	for range 10 {
		s.advance()
	}
	if now := sessions(server.Postgres); now != first {
		t.Errorf("sessions on the primary were %s, and are %s", first, now)
	}
	if now := sessions(standby); now != other {
		t.Errorf("sessions on the standby were %s, and are %s", other, now)
	}
	// A dead standby holds the horizon up for a moment only.
	standby.Kill()
	s.advance()
}

// The answers of hosts decide which is followed and what its answers vouch for.
func TestChoiceOfHosts(t *testing.T) {
	const now = 10 * time.Second
	view := func(asked time.Duration, timeline string) *hostView {
		v := &hostView{asked: asked, idle: never, system: "s", timeline: timeline}
		if timeline == "" {
			v.idle = asked
		}
		return v
	}
	failed := func(v *hostView) *hostView { v.err = errors.New("refused"); return v }
	promoted := func(v *hostView, idle time.Duration) *hostView { v.idle = idle; return v }
	foreign := func(v *hostView) *hostView { v.system = "other"; return v }
	sent := now - time.Millisecond
	for name, c := range map[string]struct {
		known   *lineage
		views   []*hostView
		best    int           // -1: none
		vouched time.Duration // of the first host on timeline 1 of s
	}{
		"primary and standby":        {&lineage{"s", "1"}, []*hostView{view(now, "1"), view(now-50*time.Millisecond, "")}, 0, now - 50*time.Millisecond},
		"the higher timeline":        {nil, []*hostView{view(now, "1"), view(now, "2")}, 1, never},
		"promoted since":             {&lineage{"s", "1"}, []*hostView{view(now, "1"), promoted(view(now, "2"), now-time.Second)}, 1, now - time.Second},
		"a lower one that is known":  {&lineage{"s", "2"}, []*hostView{view(now, "1"), view(now, "")}, -1, sent},
		"equal ones":                 {nil, []*hostView{view(now, "1"), view(now, "1")}, 0, sent},
		"another system":             {&lineage{"s", "1"}, []*hostView{view(now, "1"), foreign(view(now, "2"))}, 0, sent},
		"another system, unknown":    {nil, []*hostView{view(now, "1"), foreign(view(now, "2"))}, 1, sent},
		"only another system":        {&lineage{"s", "2"}, []*hostView{view(now, "1"), foreign(view(now, "1"))}, 1, sent},
		"a host that died":           {nil, []*hostView{view(now, "1"), failed(view(now-time.Minute, ""))}, 0, sent},
		"a host that died just now":  {nil, []*hostView{view(now, "1"), failed(view(now-300*time.Millisecond, ""))}, 0, now - 300*time.Millisecond},
		"a host that hangs":          {nil, []*hostView{view(now, "1"), view(now-900*time.Millisecond, "")}, 0, now - 900*time.Millisecond},
		"a host that has hung":       {nil, []*hostView{view(now, "1"), view(now-2*time.Second, "")}, 0, sent},
		"a host that never answered": {nil, []*hostView{view(now, "1"), nil}, 0, sent},
	} {
		o := &Origin{}
		o.lineage.Store(c.known)
		w := &hostWatcher{origin: o, clock: func() time.Duration { return now }, interval: 100 * time.Millisecond}
		for i, v := range c.views {
			h := &watchedHost{name: fmt.Sprint("host", i)}
			h.view.Store(v)
			w.hosts = append(w.hosts, h)
		}
		best, err := w.best()
		if c.best < 0 && err == nil || c.best >= 0 && best != w.hosts[c.best] {
			t.Errorf("%s: best %v, %v; want host%d", name, best, err, c.best)
		}
		moment, ok := w.vouched(sent, w.hosts[0], lineage{"s", "1"})
		if ok != (c.vouched != never) || moment != c.vouched {
			t.Errorf("%s: vouched for %v, %v; want %v", name, moment, ok, c.vouched)
		}
	}
}
