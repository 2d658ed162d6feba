package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Streams of one connection are canceled, closed, refused and read to the end at random times: every message reaches
// its stream, in order, and no stream remains open.
func TestStreamStorm(t *testing.T) {
	eachNetwork(t, func(t *testing.T, server rpc.ServerConfig, client rpc.StreamConfig) {
		server.Streams, client.Limits = rpc.StreamLimits{Max: 30, Window: 20 << 10}, rpc.StreamLimits{Window: 20 << 10}
		s := serve(t, server, chat.NewChatService(newChatter()))
		all, c := openStreams(t, s, client)
		var group sync.WaitGroup
		for worker := range 30 {
			r := rand.New(rand.NewPCG(uint64(worker), 7))
			group.Go(func() {
				for i := range 20 {
					if err := storm(t.Context(), c, fmt.Sprintf("%d/%d ", worker, i), r); err != nil {
						t.Errorf("worker %d, stream %d: %v", worker, i, err)
					}
				}
			})
		}
		group.Wait()
		noStreams(t, s)
		testkit.Eventually(t, patience, func() error {
			if st := all.Stats(); st.Open != 0 || st.Reconnects != 0 || st.Overflows != 0 {
				return fmt.Errorf("%d streams are open, %d connections were lost, %d streams overflowed", st.Open, st.Reconnects, st.Overflows)
			}
			return nil
		})
	})
}

// storm uses one stream.
func storm(ctx context.Context, c *chat.ChatStreamClient, id string, r *rand.Rand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := c.Talk(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	messages, end, size := r.IntN(30), r.IntN(30), r.IntN(3000)
	kind := r.IntN(5)
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		for n := range messages {
			m := &chat.Message{Text: id + strings.Repeat("x", size), Number: int64(n)}
			if n == end && kind == 0 {
				m.Text = "fail " + id
			}
			if st.Send(ctx, m) != nil {
				return
			}
		}
		_ = st.CloseSend(ctx)
	})
	for n := 0; ; n++ {
		if n == end {
			switch kind {
			case 1:
				cancel()
			case 2:
				st.Close()
			}
		}
		m, err := st.Recv(context.WithoutCancel(ctx))
		if err == nil {
			if m.Number != int64(n) || !strings.HasPrefix(m.Text, id) || len(m.Text) != len(id)+size {
				return fmt.Errorf("message %d is %d, %.20q", n, m.Number, m.Text)
			}
			continue
		}
		e, isException := errors.AsType[*thrift.ApplicationException](err)
		switch {
		case err == io.EOF && n == messages,
			slipstream.OutcomeOf(err) == slipstream.Refused, // the server has too many streams
			kind == 0 && isException && e.Message == id && n == end,
			kind == 1 && n >= end && errors.Is(err, context.Canceled),
			kind == 2 && n >= end && errors.Is(err, rpc.ErrStreamClosed):
			return nil
		}
		return fmt.Errorf("after %d of %d messages: %w", n, messages, err)
	}
}
