package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// viewer is a handler that uses views. Where it can, it returns the bytes that it received.
type viewer struct{ calculator }

func (v *viewer) Ping(ctx context.Context, _ *calc.BasePingArgsView) error {
	return v.calculator.Ping(ctx)
}

func (v *viewer) Add(ctx context.Context, args *calc.CalculatorAddArgsView) (int32, error) {
	return v.calculator.Add(ctx, args.A(), args.B())
}

func (v *viewer) Move(_ context.Context, args *calc.CalculatorMoveArgsView) (thrift.Struct, error) {
	p, ok := args.Point()
	if !ok {
		return nil, nil
	}
	for _, one := range args.By().All() {
		p.SetX(p.X() + one.X())
		p.SetY(p.Y() + one.Y())
	}
	return &p, nil
}

func (v *viewer) Echo(_ context.Context, args *calc.CalculatorEchoArgsView) (string, error) {
	return args.Text(), nil
}

func (v *viewer) Numbers(ctx context.Context, args *calc.CalculatorNumbersArgsView) ([]int64, error) {
	return v.calculator.Numbers(ctx, args.Count())
}

func (v *viewer) Counts(ctx context.Context, args *calc.CalculatorCountsArgsView) (map[string]int32, error) {
	var words []string
	for _, w := range args.Words().All() {
		words = append(words, w)
	}
	return v.calculator.Counts(ctx, words)
}

func (v *viewer) Forget(ctx context.Context, args *calc.CalculatorForgetArgsView) error {
	return v.calculator.Forget(ctx, args.ID())
}

func (v *viewer) Fail(ctx context.Context, args *calc.CalculatorFailArgsView) error {
	return v.calculator.Fail(ctx, args.How())
}

// Clients and handlers that use views work with those that do not.
func TestViewsOfCalls(t *testing.T) {
	seen := &viewer{}
	viewed := serve(t, rpc.ServerConfig{}, calc.NewCalculatorViewService(seen))
	decoded := serveToo(t, rpc.ServerConfig{}, calc.NewCalculatorService(&calculator{}))
	for _, transport := range []rpc.Transport{rpc.TTHeader, rpc.TTHeaderFramed, rpc.Framed, rpc.Buffered} {
		t.Run(transport.String(), func(t *testing.T) {
			config := rpc.ClientConfig{Addr: viewed.Addr().String(), Transport: transport}
			c := calc.NewCalculatorClient(connect(t, config))
			callViewer(t, c)
			before := seen.forgotten.Load()
			if err := errors.Join(c.Forget(t.Context(), 5), c.ForgetView(t.Context(), &calc.CalculatorForgetArgs{ID: 6})); err != nil {
				t.Error(err)
			}
			testkit.Eventually(t, patience, func() error {
				if n := seen.forgotten.Load() - before; n != 11 {
					return fmt.Errorf("%d was forgotten, want 11", n)
				}
				return nil
			})
			config.Addr = decoded.Addr().String()
			callViews(t, calc.NewCalculatorClient(connect(t, config)))
		})
	}
}

// callViewer calls a handler that uses views, without using views itself.
func callViewer(t *testing.T, c *calc.CalculatorClient) {
	t.Helper()
	ctx := t.Context()
	if sum, err := c.Add(ctx, 40, 2); sum != 42 || err != nil {
		t.Errorf("sum %d, %v", sum, err)
	}
	if _, err := c.Add(ctx, 1<<30, 1<<30); err == nil || !isOverflow(err, "2147483648") {
		t.Errorf("overflow: %v", err)
	}
	p, err := c.Move(ctx, &calc.Point{X: 1, Y: 1, Note: thrift.Some("n"), Blob: []byte("blob")}, []calc.Point{{X: 2, Y: 3}, {X: 4, Y: 5}})
	if err != nil || p.X != 7 || p.Y != 9 || p.Note.V != "n" || string(p.Blob) != "blob" {
		t.Errorf("moved %+v, %v", p, err)
	}
	if p, err := c.Move(ctx, nil, nil); p != nil || kindOf(err) != thrift.MissingResult {
		t.Errorf("no result: %v, %v", p, err)
	}
	for _, size := range []int{0, 1, 60 << 10, 70 << 10, 2 << 20} {
		text := strings.Repeat("x", size)
		if got, err := c.Echo(ctx, text); got != text || err != nil {
			t.Errorf("echo of %d bytes: %d, %v", size, len(got), err)
		}
	}
	if all, err := c.Counts(ctx, []string{"a", "b", "a"}); len(all) != 2 || all["a"] != 2 || err != nil {
		t.Errorf("counts: %v, %v", all, err)
	}
	if err := errors.Join(c.Ping(ctx), c.BaseClient.PingView(ctx, &calc.BasePingArgs{})); err != nil {
		t.Error(err)
	}
	if err := c.Fail(ctx, "broken"); kindOf(err) != thrift.InternalError {
		t.Errorf("a handler's error: %v", err)
	}
}

// callViews uses views to call a handler that does not use them.
func callViews(t *testing.T, c *calc.CalculatorClient) {
	t.Helper()
	ctx := t.Context()
	args := &calc.CalculatorMoveArgs{Point: &calc.Point{X: 1, Y: 1, Note: thrift.Some("n"), Blob: []byte("blob")}, By: []calc.Point{{X: 2, Y: 3}}}
	moved, err := c.MoveView(ctx, args)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := moved.Success()
	if !ok || p.X() != 3 || p.Y() != 4 || p.Note().V != "n" || string(p.Blob()) != "blob" {
		t.Errorf("moved %v %d %d", ok, p.X(), p.Y())
	}
	// Received structs are forwarded unchanged.
	var again calc.CalculatorMoveArgsView
	again.SetPointView(&p)
	if moved, err = c.MoveView(ctx, &again); err != nil {
		t.Fatal(err)
	}
	if p, ok = moved.Success(); !ok || p.X() != 3 || string(p.Blob()) != "blob" {
		t.Errorf("moved %v %d", ok, p.X())
	}
	if r, err := c.MoveView(ctx, &calc.CalculatorMoveArgs{}); r != nil || kindOf(err) != thrift.MissingResult {
		t.Errorf("no result: %v, %v", r, err)
	}
	if r, err := c.AddView(ctx, &calc.CalculatorAddArgs{A: 40, B: 2}); err != nil || r.Success().V != 42 {
		t.Errorf("sum: %v, %v", r, err)
	}
	if r, err := c.AddView(ctx, &calc.CalculatorAddArgs{A: 1 << 30, B: 1 << 30}); r != nil || err == nil || !isOverflow(err, "2147483648") {
		t.Errorf("overflow: %v, %v", r, err)
	}
	if err := c.FailView(ctx, &calc.CalculatorFailArgs{How: "broken"}); kindOf(err) != thrift.InternalError {
		t.Errorf("a handler's error: %v", err)
	}
	r, err := c.CountsView(ctx, &calc.CalculatorCountsArgs{Words: []string{"a", "b", "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if all := maps.Collect(r.Success().All()); !maps.Equal(all, map[string]int32{"a": 2, "b": 1}) {
		t.Errorf("counts: %v", all)
	}
}

// A view belongs to the caller: later messages do not change it. Tests overwrite memory that is reused.
func TestViewsKeepTheirMemory(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorViewService(&viewer{}))
	client := connect(t, rpc.ClientConfig{Addr: s.Addr().String()})
	c := calc.NewCalculatorClient(client)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var kept []*calc.CalculatorMoveResultView
			size := 10 << (i % 14)
			note := func(n int) string { return fmt.Sprint(i, " ", n, strings.Repeat("x", size)) }
			for n := range 20 {
				r, err := c.MoveView(t.Context(), &calc.CalculatorMoveArgs{Point: &calc.Point{Note: thrift.Some(note(n))}})
				if err != nil {
					t.Error(err)
					return
				}
				kept = append(kept, r)
			}
			for n, r := range kept {
				if p, _ := r.Success(); p.Note().V != note(n) {
					t.Errorf("the view of the reply %d has the note %.20q", n, p.Note().V)
				}
			}
		})
	}
	all.Wait()
}

// The Compact protocol does not support views: both sides report this.
func TestViewsNeedTheBinaryProtocol(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorViewService(&viewer{}))
	c := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: s.Addr().String(), Compact: true}))
	if _, err := c.Add(t.Context(), 1, 2); kindOf(err) != thrift.ProtocolError || !strings.Contains(err.Error(), "Compact") {
		t.Errorf("a call in the Compact protocol: %v", err)
	}
	if _, err := c.AddView(t.Context(), &calc.CalculatorAddArgs{A: 1}); err == nil || !strings.Contains(err.Error(), "Compact") {
		t.Errorf("a view of a reply in the Compact protocol: %v", err)
	}
}

// brokenResults is a handler whose results cannot be encoded.
type brokenResults struct{ viewer }

// broken panics when it is encoded; if late is set, only after its size has been computed.
type broken struct {
	thrift.Struct
	late bool
}

func (b broken) SizeThrift() int {
	if b.late {
		return 10
	}
	panic("secret")
}

func (broken) AppendThrift([]byte) []byte { panic("secret") }

func (*brokenResults) Move(_ context.Context, args *calc.CalculatorMoveArgsView) (thrift.Struct, error) {
	p, _ := args.Point()
	return broken{late: p.X() == 1}, nil
}

// If encoding a result panics, its call gets an exception, and the server and the connection continue. Arguments whose
// encoding panics are not sent.
func TestStructsThatPanic(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorViewService(new(brokenResults)))
	c := calc.NewCalculatorClient(connect(t, rpc.ClientConfig{Addr: s.Addr().String()}))
	for x := range int32(2) {
		_, err := c.Move(t.Context(), &calc.Point{X: x}, nil)
		if kindOf(err) != thrift.InternalError || !strings.Contains(err.Error(), "the answer of move cannot be sent: encoding it panicked") || strings.Contains(err.Error(), "secret") {
			t.Errorf("x is %d: %v", x, err)
		}
		if sum, err := c.Add(t.Context(), 1, 2); sum != 3 || err != nil {
			t.Errorf("the next call: %d, %v", sum, err)
		}
	}
	if n := s.Stats().Panics; n != 2 {
		t.Errorf("%d panics were counted", n)
	}
	for _, late := range []bool{false, true} { // arguments, too
		_, err := c.AddView(t.Context(), broken{late: late})
		if slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "the arguments cannot be encoded") {
			t.Errorf("arguments that panic (late: %v): %v", late, err)
		}
	}
}
