//go:build ignore

// A Kitex server or client for calc.thrift, used by foreign_test.go:
//
//	kitex server PORT TRANSPORT PROTOCOL KIND [LEDGER]
//	kitex client PORT TRANSPORT PROTOCOL
//	kitex load PORT TRANSPORT CONNECTIONS OUTCOMES
//
// KIND is default, mux for a server that answers in any order, or bare for a server without the header handler.
// CONNECTIONS is pool or mux; the file OUTCOMES gets a line for each call. The test generates the package gen/calc and
// builds the program.
package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/pkg/remote"
	"github.com/cloudwego/kitex/pkg/rpcinfo"
	"github.com/cloudwego/kitex/pkg/transmeta"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/transport"

	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/calc"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/calc/calculator"
	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/calc/clock"
)

func main() {
	klog.SetLevel(klog.LevelFatal)
	addr := net.JoinHostPort("127.0.0.1", os.Args[2])
	var err error
	switch os.Args[1] {
	case "server":
		err = serve(addr, os.Args[5], os.Args[6:])
	case "client":
		err = call(addr, os.Args[3])
	case "load":
		err = load(addr, os.Args[3], os.Args[4], os.Args[5])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type handler struct {
	forgotten atomic.Int64
	ledger    *os.File // may be nil
}

// note writes a line to the ledger for an executed call.
func (h *handler) note(kind string, id any) error {
	if h.ledger == nil {
		return nil
	}
	_, err := fmt.Fprintf(h.ledger, "%s %v\n", kind, id)
	return err
}

func (*handler) Ping(context.Context) error { return nil }

func (h *handler) Add(_ context.Context, a, b int32) (int32, error) {
	if err := h.note("add", a); err != nil {
		return 0, err
	}
	sum := int64(a) + int64(b)
	if sum > math.MaxInt32 || sum < math.MinInt32 {
		what := fmt.Sprint(sum)
		return 0, &calc.Overflow{What: what}
	}
	return a + b, nil
}

func (*handler) Move(_ context.Context, p *calc.Point, by []*calc.Point) (*calc.Point, error) {
	for _, one := range by {
		p.X, p.Y = p.X+one.X, p.Y+one.Y
	}
	return p, nil
}

func (h *handler) Echo(ctx context.Context, text string) (string, error) {
	switch text {
	case "forgotten":
		return fmt.Sprint(h.forgotten.Load()), nil
	case "header": // the metadata and the remaining milliseconds of the call
		tenant, _ := metainfo.GetPersistentValue(ctx, "TENANT")
		user, _ := metainfo.GetValue(ctx, "USER")
		return fmt.Sprint(tenant, " ", user, " ", rpcinfo.GetRPCInfo(ctx).Config().RPCTimeout().Milliseconds()), nil
	}
	id, _, _ := strings.Cut(text, " ")
	return text, h.note("echo", id)
}

func (*handler) Numbers(_ context.Context, count int32) ([]int64, error) {
	all := []int64{}
	for i := range count {
		all = append(all, int64(i))
	}
	return all, nil
}

func (*handler) Counts(_ context.Context, words []string) (map[string]int32, error) {
	all := make(map[string]int32)
	for _, w := range words {
		all[w]++
	}
	return all, nil
}

func (h *handler) Forget(_ context.Context, id int64) error {
	h.forgotten.Add(id)
	return h.note("forget", id)
}

func (*handler) Fail(_ context.Context, how string) error {
	if text, ok := strings.CutPrefix(how, "status "); ok {
		return kerrors.NewBizStatusErrorWithExtra(7, text, map[string]string{"a": "b"})
	}
	return errors.New(how)
}

func serve(addr, kind string, ledger []string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	h := new(handler)
	if len(ledger) > 0 {
		if h.ledger, err = os.OpenFile(ledger[0], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	options := []server.Option{server.WithListener(l)}
	if kind == "mux" {
		options = append(options, server.WithMuxTransport())
	}
	if kind != "bare" {
		options = append(options, server.WithMetaHandler(transmeta.ServerTTHeaderHandler))
	}
	return calculator.NewServer(h, options...).Run()
}

var transports = map[string]transport.Protocol{
	"buffered": transport.PurePayload, "framed": transport.Framed, "ttheader": transport.TTHeader, "ttheader-framed": transport.TTHeaderFramed,
}

func call(addr, format string) error {
	options := []client.Option{client.WithHostPorts(addr), client.WithTransportProtocol(transports[format]), client.WithRPCTimeout(time.Minute)}
	header := strings.HasPrefix(format, "ttheader")
	if header { // other formats do not support multiplexing
		options = append(options, client.WithMetaHandler(transmeta.ClientTTHeaderHandler))
		if err := callWith(append(slices.Clone(options), client.WithMuxConnection(1)), header); err != nil {
			return fmt.Errorf("multiplexed: %w", err)
		}
	}
	return callWith(options, header)
}

func callWith(options []client.Option, header bool) error {
	c, err := calculator.NewClient("calc", options...)
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range int32(100) {
		if sum, err := c.Add(ctx, i, 1); sum != i+1 || err != nil {
			return fmt.Errorf("sum %d, %w", sum, err)
		}
	}
	var overflow *calc.Overflow
	if _, err := c.Add(ctx, math.MaxInt32, 1); !errors.As(err, &overflow) || overflow.What != "2147483648" {
		return fmt.Errorf("overflow: %w", err)
	}
	note := "n"
	p, err := c.Move(ctx, &calc.Point{X: 1, Y: 1, Note: &note, Blob: []byte("blob")}, []*calc.Point{{X: 2, Y: 3}})
	if err != nil || p.X != 3 || p.Y != 4 || p.GetNote() != "n" || string(p.Blob) != "blob" {
		return fmt.Errorf("moved %+v, %w", p, err)
	}
	for _, size := range []int{0, 1, 70 << 10, 2 << 20} {
		text := strings.Repeat("x", size)
		if got, err := c.Echo(ctx, text); got != text || err != nil {
			return fmt.Errorf("echo of %d bytes: %d, %w", size, len(got), err)
		}
	}
	if all, err := c.Numbers(ctx, 3); !slices.Equal(all, []int64{0, 1, 2}) || err != nil {
		return fmt.Errorf("numbers %v, %w", all, err)
	}
	if all, err := c.Counts(ctx, []string{"a", "b", "a"}); len(all) != 2 || all["a"] != 2 || err != nil {
		return fmt.Errorf("counts %v, %w", all, err)
	}
	before, err := forgotten(ctx, c)
	if err != nil {
		return err
	}
	for range 10 {
		if err := c.Forget(ctx, 5); err != nil {
			return err
		}
	}
	for now := before; now != before+50; {
		if now, err = forgotten(ctx, c); err != nil {
			return err
		}
	}
	if err := c.Ping(ctx); err != nil {
		return err
	}
	if err := c.Fail(ctx, "broken"); kindOf(err) != remote.InternalError {
		return fmt.Errorf("a handler's error: kind %d, %w", kindOf(err), err)
	}
	if header {
		if err := callWithHeader(ctx, c); err != nil {
			return err
		}
	}
	other, err := clock.NewClient("clock", options...)
	if err != nil {
		return err
	}
	if _, err := other.Now(ctx); kindOf(err) != remote.UnknownMethod {
		return fmt.Errorf("a function that the server does not have: kind %d, %w", kindOf(err), err)
	}
	return nil
}

// callWithHeader makes calls that need a header.
func callWithHeader(ctx context.Context, c calculator.Client) error {
	ctx = metainfo.WithValue(metainfo.WithPersistentValue(ctx, "TENANT", "a"), "USER", "b")
	text, err := c.Echo(ctx, "header")
	if err != nil {
		return err
	}
	left := 0
	if _, err := fmt.Sscanf(text, "a b %d", &left); err != nil || left <= 0 || left > 60_000 {
		return fmt.Errorf("the server received %q", text)
	}
	err = c.Fail(ctx, "status sold out")
	status, ok := kerrors.FromBizStatusError(err)
	if !ok || status.BizStatusCode() != 7 || status.BizMessage() != "sold out" || status.BizExtra()["a"] != "b" {
		return fmt.Errorf("a status: %w", err)
	}
	return nil
}

func forgotten(ctx context.Context, c calculator.Client) (int, error) {
	text, err := c.Echo(ctx, "forgotten")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// kindOf returns the kind of the exception in an error, or -1.
func kindOf(err error) int32 {
	var e *remote.TransError
	if errors.As(err, &e) {
		return e.TypeID()
	}
	return -1
}

// load makes calls from eight goroutines until SIGTERM, and writes the outcome of each call: "add 7" for an answered
// call, followed by the error for a failed one.
func load(addr, format, connections, file string) error {
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	options := []client.Option{client.WithHostPorts(addr), client.WithTransportProtocol(transports[format]), client.WithRPCTimeout(10 * time.Second), client.WithConnectTimeout(10 * time.Second)}
	if strings.HasPrefix(format, "ttheader") {
		options = append(options, client.WithMetaHandler(transmeta.ClientTTHeaderHandler))
	}
	if connections == "mux" {
		options = append(options, client.WithMuxConnection(1))
	} else {
		options = append(options, client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: 8, MaxIdleGlobal: 8, MaxIdleTimeout: time.Minute}))
	}
	c, err := calculator.NewClient("calc", options...)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var all sync.WaitGroup
	for i := range int32(8) {
		// ctx ends it, and load waits for it.
		all.Go(func() {
			for id := i << 22; ctx.Err() == nil; id++ {
				sum, err := c.Add(context.Background(), id, 1)
				if err == nil && sum != id+1 {
					err = fmt.Errorf("sum %d", sum)
				}
				line := fmt.Sprintln("add", id)
				if err != nil {
					line = fmt.Sprintf("add %d %q\n", id, err.Error())
				}
				if _, err := out.WriteString(line); err != nil {
					panic(err)
				}
				if err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	all.Wait()
	return out.Close()
}
