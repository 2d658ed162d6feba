package pipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Random streams, mixed with calls, on connections that fail: each stream gets its own frames, in order and
// without a gap, and then one end. The results of Send and Recv agree with what the server saw.

// modelStream is a stream that is used by one goroutine, and its expected state.
type modelStream struct {
	*Stream
	t     *testing.T
	r     *rand.Rand
	name  string
	sent  []string
	taken int
	ended error // from Recv; nil while the stream is open
}

// body returns the next frame, which contains the name of the stream.
func (m *modelStream) body(kind string) string {
	return fmt.Sprint(kind, m.name, "/", len(m.sent), ":", strings.Repeat("x", m.r.IntN(1<<m.r.IntN(15))))
}

// send sends the next frame and records it if it was queued.
func (m *modelStream) send(ctx context.Context, kind string) {
	body := m.body(kind)
	err := sendToy(ctx, m.Stream, body)
	if err == nil {
		m.sent = append(m.sent, body)
		return
	}
	select {
	case <-m.done:
	case <-m.socket.life.done:
	default:
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			m.t.Errorf("stream %s: Send before its end: %v", m.name, err)
		}
	}
}

// recv receives a frame, unless ctx ends first, and compares it with what was sent, because the server echoes.
func (m *modelStream) recv(ctx context.Context) {
	got, err := recvToy(ctx, m.Stream)
	switch {
	case err == nil && m.ended != nil:
		m.t.Errorf("stream %s: received %.30q after the end, %v", m.name, got, m.ended)
	case err == nil && (m.taken >= len(m.sent) || got != m.sent[m.taken]):
		m.t.Errorf("stream %s: frame %d is %.30q", m.name, m.taken, got)
	case err == nil:
		m.taken++
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
	case m.ended != nil && err != m.ended:
		m.t.Errorf("stream %s: Recv returned %v, and before that %v", m.name, err, m.ended)
	default:
		m.ended = err
	}
}

// run uses the stream at random until it ends.
func (m *modelStream) run(cancel func()) {
	brief := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Duration(m.r.IntN(20))*time.Millisecond)
	}
	for range m.r.IntN(80) {
		ctx, stop := brief()
		switch n := m.r.IntN(100); {
		case n < 50:
			m.send(ctx, "d")
		case n < 95:
			m.recv(ctx)
		case n < 97:
			cancel()
		case n < 98:
			m.Close()
		default:
			time.Sleep(time.Duration(m.r.IntN(5)) * time.Millisecond)
		}
		stop()
	}
	m.send(context.Background(), "e")
	for m.ended == nil {
		m.recv(context.Background())
	}
	if m.ended == io.EOF && m.taken != len(m.sent) {
		m.t.Errorf("stream %s: %d of %d frames were received before the end", m.name, m.taken, len(m.sent))
	}
	m.Close()
	m.recv(context.Background()) // returns the same error again
}

func TestStreamsEqualTheirModel(t *testing.T) {
	for _, credited := range []bool{false, true} {
		for _, bits := range []int{32, 64} {
			t.Run(fmt.Sprint("credit ", credited, ", ", bits, " bits"), func(t *testing.T) {
				virtual(t, func(t *testing.T) { modelOfStreams(t, credited, bits) })
			})
		}
	}
}

func modelOfStreams(t *testing.T, credited bool, bits int) {
	seed := testkit.Seed(t)
	k := startStreamToy(t, &streamToy{}, "")
	k.faults = func(dial int) faults { // used by several goroutines
		dice := testkit.Fork(seed, 1<<33+uint64(dial))
		f := faults{chunk: []int{0, 1000, 7}[dial%3], room: 1 << (7 + dice.IntN(10))}
		switch dial % 4 {
		case 0:
			f.resetUp = 1000 + dice.IntN(600_000)
		case 2:
			f.resetDown = 1000 + dice.IntN(600_000)
		}
		return f
	}
	k.on = func(r toyRequest) {
		if credited && r.body[0] == 'd' {
			r.reply(fmt.Sprint("c", len(r.body)+12)) // the bytes that it has read
		}
		echoStream(r)
	}
	e := k.engine(func(c *Config) {
		use32BitTickets(c)
		c.Traits.TicketBits, c.Traits.Place, c.Sockets = bits, Random, 3
		c.Streams = StreamConfig{ReceiveBytes: 200_000, SendBytes: 20_000, SocketBytes: 50_000, MaxBytes: 2_000_000}
		c.WaitWhenFull = true
		if credited {
			withToyCredit(c, 30_000, 0)
		}
	})
	var wg sync.WaitGroup
	var mu sync.Mutex
	ends := map[string]int{}
	lives := 8
	if raceEnabled {
		lives = 2
	}
	for i := range 30 {
		wg.Go(func() {
			r := testkit.Fork(seed, uint64(i))
			for j := range lives {
				life := time.Hour
				if r.IntN(4) == 0 {
					life = time.Duration(r.IntN(300)) * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(context.Background(), life)
				st, err := openToy(ctx, e)
				if err != nil {
					if ctx.Err() == nil && !slipstream.SafeToRetry(err) {
						t.Errorf("OpenStream: %v", err)
					}
					cancel()
					continue
				}
				m := &modelStream{Stream: st, t: t, r: r, name: fmt.Sprint(i, ".", j)}
				m.run(cancel)
				cancel()
				mu.Lock()
				cause := errors.Unwrap(m.ended)
				if cause == nil {
					cause = m.ended
				}
				ends[fmt.Sprintf("%.25s", cause)]++
				mu.Unlock()
			}
		})
		wg.Go(func() {
			for j := range 10 * lives {
				c := &Call{ending: newEnding(), engine: e, Frame: appendToyTicket(nil, fmt.Sprint("r", i, "/", j))}
				if err := e.Do(context.Background(), c); err == nil && string(c.Reply()[12:]) != string(c.Frame[12:]) {
					t.Errorf("sent %q, got %q", c.Frame, c.Reply())
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	wg.Wait()
	t.Logf("ends: %v", ends)
	checkStreamsBalanced(t, e)
}
