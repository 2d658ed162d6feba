package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// streamWindow bounds the messages that the server may send before they are printed. The largest message fits.
const streamWindow = 17 << 20

// resetTime is how long the command waits for the end of a canceled stream to be sent.
const resetTime = time.Second

// streamConfig returns the configuration of a stream client. If timeout is 0, there is no limit.
func (f *callFlags) streamConfig(call rpc.ClientConfig, timeout time.Duration) (o rpc.StreamConfig, err error) {
	switch {
	case call.Transport != rpc.TTHeader:
		return o, fmt.Errorf("--transport %s with a streaming function; expected ttheader", f.client.transport)
	case call.Compact:
		return o, errors.New("--protocol compact with a streaming function; expected binary")
	}
	o = rpc.StreamConfig{Addr: call.Addr, TLS: call.TLS, FailFast: true, Limits: rpc.StreamLimits{Max: 1, Window: streamWindow}}
	if timeout > 0 {
		o.DialTimeout = min(timeout, 5*time.Second)
	}
	return o, nil
}

// runStream opens a stream, sends the messages of the input, and prints those of the server as they arrive.
func (f *callFlags) runStream(c *cobra.Command, call thriftCall) error {
	timeout := time.Duration(0) // a stream may be open for long
	if c.Flags().Changed("timeout") {
		timeout = time.Duration(f.timeout)
	}
	config, err := f.streamConfig(call.client, timeout)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	in, err := openMessages(c.InOrStdin(), f.data)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	defer in.close()
	if call.mode == idl.ServerStreams {
		if err := in.single(call.function.Name); err != nil {
			return err
		}
	}
	signaled, stop := untilFirstSignal(c)
	defer stop()
	ctx := rpc.WithMeta(signaled, call.meta...)
	if timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	client, err := rpc.NewStreamClient(config)
	if err != nil {
		return fail(exitUsage, err, "")
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.Background(), resetTime)
		defer cancel()
		_ = client.Shutdown(ending)
	}()
	if err := client.Connect(ctx); err != nil {
		if signaled.Err() != nil {
			return callFailure(signaled, err)
		}
		return fail(exitUnreachable, errors.New(printable(err.Error(), maxErrorText)), noThriftServer)
	}
	opener, err := genericrpc.NewStreamClient(client, call.service, genericrpc.Config{AllowUnknown: f.allowUnknown, JSON: thrift.JSON{I64Strings: f.i64Strings}})
	if err != nil {
		return fail(exitUsage, err, "")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := opener.Open(ctx, call.function.Name)
	if err != nil {
		return callFailure(signaled, err)
	}
	defer stream.Close()
	// It ends with the input or with ctx; if it is waiting for the standard input, it ends with the process. Nothing waits for it.
	go func() {
		if err := in.sendTo(ctx, stream); err != nil {
			cancel(err)
		}
	}()
	if err := f.receive(ctx, c, stream); err != nil {
		if mistake, ok := errors.AsType[*failure](context.Cause(ctx)); ok {
			return mistake // it has ended the stream
		}
		return callFailure(signaled, err)
	}
	return nil
}

// receive prints the messages of a stream.
func (f *callFlags) receive(ctx context.Context, c *cobra.Command, stream *genericrpc.Stream) error {
	if f.verbose {
		header, err := stream.Header(ctx)
		if err != nil {
			return err
		}
		printPairs(c.ErrOrStderr(), "header", header)
	}
	for {
		text, err := stream.Recv(ctx)
		if err == nil {
			if err = f.print(c.OutOrStdout(), text); err != nil {
				return err
			}
			continue
		}
		if f.verbose {
			printPairs(c.ErrOrStderr(), "trailer", stream.Trailer())
		}
		if err == io.EOF {
			return nil
		}
		return err
	}
}

// printPairs prints the keys and values of a header or a trailer.
func printPairs(w io.Writer, what string, all map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(w, "%s %s\n", what, printable(key+": "+all[key], maxErrorText))
	}
}

// messages are JSON values, one after another, each read when it is needed. One goroutine at a time uses them.
type messages struct {
	name  string
	room  *io.LimitedReader // for the next value
	json  *json.Decoder
	file  *os.File // nil unless the messages come from one
	first json.RawMessage
	read  int // messages
}

// openMessages returns the messages that --data specifies. The caller must close them.
func openMessages(stdin io.Reader, data string) (*messages, error) {
	m := &messages{name: "--data"}
	var from io.Reader = strings.NewReader(data)
	if path, ofFile := strings.CutPrefix(data, "@"); ofFile {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		from, m.name, m.file = file, path, file
	} else if data == "-" {
		from, m.name = stdin, "the standard input"
	}
	m.room = &io.LimitedReader{R: from}
	m.json = json.NewDecoder(m.room)
	return m, nil
}

func (m *messages) close() {
	if m.file != nil {
		_ = m.file.Close() // it was only read
	}
}

// next returns the next message, or io.EOF after the last one.
func (m *messages) next() (text json.RawMessage, err error) {
	if m.first != nil {
		text, m.first = m.first, nil
		return text, nil
	}
	m.room.N = maxArguments + 1
	err = m.json.Decode(&text)
	switch {
	case err == nil:
		m.read++
		return text, nil
	case m.room.N <= 0:
		return nil, fmt.Errorf("%s has a message of more than %d bytes", m.name, maxArguments)
	case err == io.EOF:
		return nil, io.EOF
	}
	return nil, fmt.Errorf("message %d of %s: %w", m.read+1, m.name, err)
}

// single checks that there is exactly one message. It reads the whole input.
func (m *messages) single(function string) error {
	first, err := m.next()
	if err == nil {
		if _, err = m.next(); err == io.EOF {
			m.first = first
			return nil
		}
	}
	if err == nil || err == io.EOF {
		err = fmt.Errorf("%s has %s messages; the function %s has no stream of requests, and expects one", m.name, map[bool]string{true: "no", false: "several"}[err == io.EOF], function)
	}
	return fail(exitUsage, err, "")
}

// sendTo sends the messages. It returns an error, with an exit code, only if the input is invalid. If the stream has
// ended, Recv returns the reason.
func (m *messages) sendTo(ctx context.Context, stream *genericrpc.Stream) error {
	for {
		text, err := m.next()
		if err == io.EOF {
			_ = stream.CloseSend(ctx)
			return nil
		}
		if err != nil {
			return fail(exitUsage, err, "")
		}
		if err := stream.Send(ctx, text); err != nil {
			return m.mistake(err)
		}
	}
}

// mistake returns the error of the last message if it is invalid, and nil if the stream has ended.
func (m *messages) mistake(err error) error {
	_, ofJSON := errors.AsType[*thrift.JSONError](err)
	_, ofValue := errors.AsType[*generic.ValueError](err)
	_, ofMessage := errors.AsType[*rpc.InvalidCallError](err)
	if !ofJSON && !ofValue && !ofMessage {
		return nil
	}
	text := fmt.Sprintf("message %d of %s: %s", m.read, m.name, printable(err.Error(), maxErrorText))
	return fail(exitUsage, errors.New(text), "slipstream call thrift describe shows the type of messages; those before it were sent")
}
