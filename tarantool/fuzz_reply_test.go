package tarantool_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// watchSync is the sync of the watch in a greeting.
const watchSync = 1<<20 - 1

// streamCalls is the number of requests in flight when a stream arrives; their syncs are 0, 1 and
// 2.
const streamCalls = 3

// streamed sends requests to a server that answers with stream, in pieces whose lengths repeat, and
// hangs up. It returns the result of each request.
func streamed(t testing.TB, stream []byte, pieces []int) (data [streamCalls]tarantool.Raw, errs [streamCalls]error) {
	t.Helper()
	var serving sync.WaitGroup
	dialled := false
	o := tarantool.Options{Retries: -1, StallTimeout: -1, Backoff: time.Hour, MaxBackoff: time.Hour}
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if dialled {
			return nil, errors.New("there was a connection")
		}
		dialled = true
		client, server := net.Pipe()
		serving.Go(func() { serveStream(server, stream, pieces) }) // ends with the connection
		return client, nil
	}
	c, err := tarantool.Connect(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var futures [streamCalls]tarantool.Future
	for i := range futures {
		futures[i] = c.Start(context.Background(), tarantool.Call("f"))
	}
	for i, f := range futures {
		errs[i] = f.Wait(&data[i])
	}
	c.Close()
	serving.Wait()
	return data, errs
}

// mostPieces bounds the pieces of a stream: ten thousand take seconds on a busy machine, and the
// fuzzer would consider that a hang.
const mostPieces = 1000

// serveStream answers when all requests have arrived.
func serveStream(conn net.Conn, stream []byte, pieces []int) {
	defer conn.Close()
	if _, err := conn.Write(greeting("2.6.0")); err != nil {
		return
	}
	var in []byte
	chunk := make([]byte, 4096)
	for n := 0; n < streamCalls; {
		if m, err := box.ScanRequest(in, 0); err == nil && !m.More {
			in = in[m.Len:]
			n++
			continue
		}
		got, err := conn.Read(chunk)
		if err != nil {
			return
		}
		in = append(in, chunk[:got]...)
	}
	var draining sync.WaitGroup
	draining.Go(func() { io.Copy(io.Discard, conn) }) // ends with the connection
	defer draining.Wait()
	defer conn.Close()
	for i := 0; len(stream) > 0; i++ {
		n := len(stream)
		if len(pieces) > 0 && i < mostPieces {
			n = min(max(pieces[i%len(pieces)], 1), n)
		}
		if _, err := conn.Write(stream[:n]); err != nil {
			return
		}
		stream = stream[n:]
	}
}

// ending is the effect of a stream on a request.
type ending struct {
	answered bool
	refused  bool   // the reply is an error, or cannot be decoded
	data     []byte // the data if it was not refused
}

// readStream parses a whole stream, in order, because the client delivers nothing that follows a
// violation of the protocol. Sound means that no message ends the connection before the end of the
// stream. Violations are replies whose sync no request had. A second reply is dropped, and so is a
// push to a completed request, because the server may not know yet that the request has ended.
func readStream(stream []byte) (ends [streamCalls]ending, sound bool) {
	var scanner box.Scanner
	for {
		m, err := scanner.Scan(stream)
		if err != nil || m.Kind == box.More {
			return ends, err == nil
		}
		body := stream[m.BodyAt:m.Len]
		stream = stream[m.Len:]
		// A reply with the sync of the greeting's watch says that a request without a reply was
		// refused.
		if m.Kind != box.Reply || m.Sync == watchSync {
			continue
		}
		if m.Sync >= streamCalls {
			return ends, false
		}
		if ends[m.Sync].answered {
			continue // dropped
		}
		e := ending{answered: true}
		r, err := box.ParseBody(m.Code, body)
		d := iproto.NewDecoder(r.Data)
		if r.Data == nil {
			d = iproto.NewDecoder([]byte{0x90})
		}
		if e.data = d.Raw(); err != nil || m.Code != uint32(box.CodeOK) || d.Err() != nil || d.Len() > 0 {
			e.refused = true
		}
		ends[m.Sync] = e
	}
}

// judgeStream compares the results of requests with the stream that answered them.
func judgeStream(t *testing.T, stream []byte, data [streamCalls]tarantool.Raw, errs [streamCalls]error) {
	t.Helper()
	ends, sound := readStream(stream)
	// The client answers this event, and may find that the server has gone before it has passed on
	// what it has read.
	writes := bytes.Contains(stream, []byte("box.shutdown"))
	for i, err := range errs {
		e, outcome := ends[i], slipstream.OutcomeOf(err)
		switch {
		case err == nil:
			if !e.answered || e.refused || !bytes.Equal(e.data, data[i]) {
				t.Errorf("request %d got %x, but the stream has %+v for it", i, data[i], e)
			}
		case outcome == slipstream.Executed || outcome == slipstream.Refused:
			if !e.refused {
				t.Errorf("request %d: %v, but the stream has %+v for it", i, err, e)
			}
		case errors.As(err, new(*tarantool.ServerError)):
			if !e.refused {
				t.Errorf("request %d: %v, but the stream has %+v for it", i, err, e)
			}
		case outcome != slipstream.MaybeExecuted || sound && e.answered && !writes:
			t.Errorf("request %d: %v, but the stream has %+v for it", i, err, e)
		}
	}
}

// streams returns answers to all three requests, and other streams.
func streams() map[string][]byte {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	push := func(sync uint64) []byte { return box.AppendPush(nil, sync, 1, 1, []byte{0xa1, 'p'}) }
	failure := box.AppendError(nil, 0, 1, &iproto.BoxError{Type: "ClientError", Message: "no luck", Code: 32})
	return map[string][]byte{
		"in order":      join(dataReply(0, "\x91\xa1a"), dataReply(1, "\x91\xa1b"), dataReply(2, "\x91\xa1c")),
		"backwards":     join(dataReply(2, "\x91\xa1c"), dataReply(1, "\x91\xa1b"), dataReply(0, "\x91\xa1a")),
		"all kinds":     join(push(1), dataReply(2, "\x92\xc0\xc3"), box.AppendEvent(nil, "k", []byte{1}), failure, push(1), push(7), reply(1, "\x80")),
		"the end":       join(box.AppendEvent(nil, "box.shutdown", []byte{0xc3}), dataReply(0, "\x90"), dataReply(1, "\x91\x01"), dataReply(2, "\x91\x02")),
		"not the end":   join(box.AppendEvent(nil, "box.shutdown", []byte{0xc2}), dataReply(0, "\x90"), failure[:20]),
		"other lengths": join([]byte("\x09\x82\x00\x00\x01\x00\x81\x30\x91\x07"), []byte("\xcc\x09\x82\x01\x01\x00\x00\x81\x30\x91\x08"), []byte("\xcd\x00\x07\x82\x01\x02\x00\x00\x81\x30")),
		"broken bodies": join(reply(0, "\x81\x30\xdd\xff\xff\xff\xff"), reply(1, "\xc1"), dataReply(2, "\x91\x92\x01")),
		"twice":         join(dataReply(0, "\x91\x01"), dataReply(1, "\x91\x02"), dataReply(1, "\x91\x03")),
		"nobody":        join(dataReply(0, "\x91\x01"), dataReply(3, "\x91\x03")),
		"another life":  join(dataReply(0, "\x91\x01"), dataReply(1<<20|1, "\x91\x03")),
		"the sync 2^32": join(dataReply(0, "\x91\x01"), dataReply(1<<32|1, "\x91\x03")),
		"a push beyond": join(dataReply(0, "\x91\x01"), push(1<<44|1), dataReply(1, "\x90")),
		"a late push":   join(dataReply(1, "\x91\x01"), push(1), dataReply(0, "\x90"), dataReply(2, "\x90")),
		"to a watch":    join(dataReply(0, "\x90"), push(watchSync), dataReply(watchSync, "\x90"), dataReply(1, "\x90")),
		"after a watch": join(box.AppendEvent(nil, "k", []byte{1}), dataReply(1<<32|watchSync, "\x90"), dataReply(1, "\x90")),
		"a large one":   join(dataReply(1, "\x91\xda\x02\x00"+strings.Repeat("x", 512)), dataReply(0, "\x90"), dataReply(2, "\x90")),
		"garbage":       []byte("\xc1\xc1\xc1"),
	}
}

// However a stream is split, each request gets the result that the whole stream has for it.
func TestReplySplits(t *testing.T) {
	testkit.NoLeaks(t)
	for name, stream := range streams() {
		t.Run(name, func(t *testing.T) {
			if _, sound := readStream(stream); sound != !strings.Contains("nobody, another life, the sync 2^32, after a watch, garbage", name) {
				t.Fatalf("sound: %t", sound)
			}
			for at := range len(stream) {
				data, errs := streamed(t, stream, []int{at, len(stream)})
				judgeStream(t, stream, data, errs)
			}
			for size := 1; size < 40; size += 3 {
				data, errs := streamed(t, stream, []int{size})
				judgeStream(t, stream, data, errs)
			}
		})
	}
}

// A server that hangs up anywhere leaves no request without a result.
func TestReplyCutOff(t *testing.T) {
	testkit.NoLeaks(t)
	for name, stream := range streams() {
		t.Run(name, func(t *testing.T) {
			for at := range min(len(stream), 150) {
				data, errs := streamed(t, stream[:at], nil)
				judgeStream(t, stream[:at], data, errs)
			}
		})
	}
}

// FuzzReplies lets a server answer with any bytes, in pieces of any length: nothing panics, every
// request ends, and each one that succeeds has the data that the stream contains for it.
func FuzzReplies(f *testing.F) {
	for _, stream := range streams() {
		f.Add(stream, []byte(nil))
		f.Add(stream, []byte{1})
		f.Add(stream, []byte{30, 1, 7})
	}
	for _, reply := range brokenReplies() {
		f.Add(append(reply(1), dataReply(0, "\x91\x01")...), []byte{9})
	}
	for _, reply := range doubtfulReplies() {
		f.Add(append(dataReply(0, "\x91\x01"), reply(1)...), []byte{40})
	}
	f.Fuzz(func(t *testing.T, stream, lengths []byte) {
		pieces := make([]int, len(lengths))
		for i, n := range lengths {
			pieces[i] = int(n)
		}
		data, errs := streamed(t, stream, pieces)
		judgeStream(t, stream, data, errs)
	})
}
