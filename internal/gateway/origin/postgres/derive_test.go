package postgres

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// A resource whose derivations fail is retried after pauses that double up to 30 s. Until
// then its changes are skipped. If it fails soon after it recovered, the pauses continue
// where they stopped; if it held for longer than it was lost, they start over.
func TestPausesOfAFailingDerivation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Origin{cfg: Config{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}}
		schema := &schema{set: origin.NewSet([]resource.Resource{deptResource()}), resources: []*compiled{{}}, promises: []string{""}}
		o.schema.Store(schema)
		sink := &recorder{clock: func() time.Duration { return 0 }, promises: map[cache.ResourceID]string{}}
		s := &Stream{origin: o, sink: sink, reader: newEventReader(schema)}
		fails := func(after time.Duration) {
			t.Helper()
			lost := len(sink.lost[0])
			s.breakPromise(0, errors.New("division by zero"))
			if got := sink.lost[0]; len(got) != lost+1 || !strings.HasSuffix(got[lost], "division by zero; retried after "+after.String()) {
				t.Fatalf("lost because of %q, want %d reasons, the last one retried after %v", got, lost+1, after)
			}
			time.Sleep(after - time.Nanosecond)
			s.muteTroubled(time.Now())
			s.regain(schema)
			if !s.reader.mute[0] || sink.promise() == "" {
				t.Fatalf("tried again before %v had passed", after)
			}
			time.Sleep(time.Nanosecond)
			s.muteTroubled(time.Now())
			if s.reader.mute[0] {
				t.Fatalf("not tried again after %v", after)
			}
		}
		holds := func(d time.Duration) {
			t.Helper()
			if s.regain(schema); sink.promise() != "" {
				t.Fatalf("the promise does not hold: %s", sink.promise())
			}
			time.Sleep(d)
		}
		const ms = time.Millisecond
		for _, after := range []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16_000 * ms, 30_000 * ms, 30_000 * ms, 30_000 * ms} {
			fails(after)
		}
		holds(30_000*ms - time.Nanosecond)
		fails(30_000 * ms)
		holds(30_000 * ms)
		fails(250 * ms)
		holds(250*ms - time.Nanosecond)
		fails(500 * ms)
		if got, want := len(sink.lost[0]), 13; got != want || s.derivationsFailed.Load() != int64(want) {
			t.Errorf("lost %d times, counted %d, want %d", got, s.derivationsFailed.Load(), want)
		}
	})
}
