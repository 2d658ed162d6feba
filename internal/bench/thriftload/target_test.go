package thriftload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/examples/catalog/catalog"
	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

const catalogIDL = "../../../examples/catalog/catalog.thrift"

// shelf is a handler of Catalog.
type shelf struct{ seen, stored atomic.Int64 }

func (s *shelf) Find(_ context.Context, id int64) (*catalog.Item, error) {
	switch {
	case id < 0:
		return nil, &catalog.NotFound{ID: id}
	case id == 13:
		return nil, errors.New("broken")
	case id == 14:
		return nil, &rpc.StatusError{Code: 7, Message: "sold out"}
	}
	return &catalog.Item{ID: id, Name: "spoon"}, nil
}

func (s *shelf) Store(_ context.Context, item *catalog.Item) (int64, error) {
	s.stored.Add(int64(len(item.Name)))
	return item.ID, nil
}

func (s *shelf) Viewed(context.Context, int64) error {
	s.seen.Add(1)
	return nil
}

// text is a struct with a string, in the field with the ID of the arguments or of the result.
type text struct {
	id   uint16
	text string
}

func (x *text) SizeThrift() int              { return 16 + len(x.text) }
func (x *text) AppendThrift(b []byte) []byte { return appendText(b, false, x.id, []byte(x.text)) }
func (x *text) AppendCompact(b []byte) []byte {
	return appendText(b, true, x.id, []byte(x.text))
}
func (x *text) ReadThrift(_ *thrift.Reader, b []byte, off, depth int) int {
	next := thrift.Skip(b, off, thrift.TypeStruct, depth)
	if next >= 0 {
		x.text = string(b[off+7 : off+7+int(binary.BigEndian.Uint32(b[off+3:]))])
	}
	return next
}
func (x *text) ReadCompact(_ *thrift.Reader, b []byte, off, depth int) int {
	next := thrift.SkipCompact(b, off, thrift.CompactTypeStruct, depth)
	if next >= 0 {
		n, size := binary.Uvarint(b[off+1:])
		x.text = string(b[off+1+size : off+1+size+int(n)])
	}
	return next
}

// echo is a call of a function that returns a string, changed by change.
type echo struct {
	args   text
	change func(string) thrift.Struct
}

func (e *echo) Arguments() thrift.Struct                      { return &e.args }
func (e *echo) Handle(context.Context) (thrift.Struct, error) { return e.change(e.args.text), nil }

func echoes(change func(string) thrift.Struct) *rpc.Service {
	return &rpc.Service{Name: "Echo", Methods: []rpc.Method{{Name: "echo", New: func() rpc.Exchange { return &echo{change: change} }}}}
}

// serve starts a server and returns its address.
func serve(t *testing.T, services ...*rpc.Service) string {
	t.Helper()
	s, err := rpc.NewServer(rpc.ServerConfig{}, services...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s.Addr().String()
}

// usual returns the options for a small load of one function.
func usual(addr string, command ...string) Options {
	return Options{
		Client: rpc.ClientConfig{Addr: addr, Timeout: 5 * time.Minute}, Callers: 4, Size: 64,
		Operations: []mix.Operation{{Name: command[0], Weight: 1, Command: command}},
		Keys:       clientload.Keys{Count: 50, Distribution: clientload.Sequential, Seed: 1},
	}
}

// run makes n calls.
func run(t *testing.T, o Options, n int64) (*load.Result, *Target) {
	t.Helper()
	target, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	r, err := load.Run(t.Context(), load.Config{Callers: o.Callers, Duration: time.Minute, Total: n, Counters: target.Counters()}, target)
	if err != nil {
		t.Fatal(err)
	}
	return r, target
}

// each runs a test with each transport and protocol.
func each(t *testing.T, test func(t *testing.T, transport rpc.Transport, compact bool)) {
	for _, transport := range []rpc.Transport{rpc.TTHeader, rpc.TTHeaderFramed, rpc.Framed, rpc.Buffered} {
		for _, compact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, compact %v", transport, compact), func(t *testing.T) { test(t, transport, compact) })
		}
	}
}

func TestEchoes(t *testing.T) {
	addr := serve(t, echoes(func(s string) thrift.Struct { return &text{0, s} }))
	each(t, func(t *testing.T, transport rpc.Transport, compact bool) {
		for _, size := range []int{64, 1000} {
			o := usual(addr, "Echo.echo")
			o.Client.Transport, o.Client.Compact, o.Echo, o.Size = transport, compact, true, size
			r, target := run(t, o, 200)
			if tally := target.Tally(); r.Completed != 200 || tally.Others != 200 || tally.Wrong != 0 {
				t.Errorf("%d completed, %s; %+v", r.Completed, r.ErrorSample, tally)
			}
		}
	})
}

// A reply with another string is a wrong answer; so is the reply to another call.
//
// mutant: thriftload-wrong-echo-passes
func TestWrongEchoes(t *testing.T) {
	var n atomic.Int64
	addr := serve(t, echoes(func(s string) thrift.Struct {
		switch n.Add(1) % 4 {
		case 0:
			return &text{0, s[:len(s)-1] + "?"}
		case 1:
			return &text{0, strings.Replace(s, "bench:", "bench:f", 1)}
		case 2:
			return new(genericrpc.Raw) // no field
		}
		return &text{0, s}
	}))
	each(t, func(t *testing.T, transport rpc.Transport, compact bool) {
		o := usual(addr, "Echo.echo")
		o.Client.Transport, o.Client.Compact, o.Echo = transport, compact, true
		r, target := run(t, o, 40)
		if r.Completed != 10 || r.ErrorKinds["wrong answer"] != 20 || r.ErrorKinds["no result"] != 10 || target.Tally().Wrong != 20 {
			t.Errorf("%d completed, %v, %s", r.Completed, r.ErrorKinds, r.ErrorSample)
		}
		o.Echo = false
		if r, _ := run(t, o, 40); r.Completed != 40 {
			t.Errorf("unchecked: %d completed, %v", r.Completed, r.ErrorKinds)
		}
	})
}

// mutant: thriftload-exception-is-an-answer
func TestFunctionsOfTheIDL(t *testing.T) {
	handler := new(shelf)
	addr := serve(t, catalog.NewCatalogService(handler))
	each(t, func(t *testing.T, transport rpc.Transport, compact bool) {
		try := func(words ...string) (*load.Result, *Target) {
			o := usual(addr, words...)
			o.Client.Transport, o.Client.Compact, o.IDL = transport, compact, catalogIDL
			return run(t, o, 40)
		}
		for _, words := range [][]string{
			{"Catalog.find", `{"id": 7}`}, {"Catalog.find", `{"id": 100__key__}`}, {"Catalog.find"}, {"Catalog.viewed", `{"id": 1}`},
			{"Catalog.store", `{"item": {"id": __key__, "name": "__data__", "tags": ["a", "b"]}}`},
		} {
			stored := handler.stored.Load()
			r, target := try(words...)
			if r.Completed != 40 || target.Tally().Others != 40 {
				t.Errorf("%v: %d completed, %s", words, r.Completed, r.ErrorSample)
			}
			if words[0] == "Catalog.store" && handler.stored.Load()-stored != 40*64 {
				t.Errorf("names of %d bytes arrived, want 40 of 64", handler.stored.Load()-stored)
			}
		}
		status := "status 7"
		if transport == rpc.Framed || transport == rpc.Buffered {
			status = "internal error"
		}
		for arguments, kind := range map[string]string{`{"id": -1}`: "exception NotFound", `{"id": 13}`: "internal error", `{"id": 14}`: status} {
			if r, _ := try("Catalog.find", arguments); r.Errors != 40 || r.ErrorKinds[kind] != 40 {
				t.Errorf("%s: %v, want %s: %s", arguments, r.ErrorKinds, kind, r.ErrorSample)
			}
		}
	})
}

// Calls fail if the server does not have the function or its declaration is not known.
func TestFailuresOfServers(t *testing.T) {
	addr := serve(t, catalog.NewCatalogService(new(shelf)))
	r, _ := run(t, usual(addr, "Catalog.none"), 8)
	if r.Errors != 8 || r.ErrorKinds["unknown method"] != 8 {
		t.Errorf("%v: %s", r.ErrorKinds, r.ErrorSample)
	}
	// The ID of the item is a string instead of a number, so it stays 0, and no exception is
	// thrown.
	if r, _ := run(t, usual(addr, "Catalog.find"), 8); r.Completed != 8 {
		t.Errorf("%v: %s", r.ErrorKinds, r.ErrorSample)
	}
}

func TestMixes(t *testing.T) {
	addr := serve(t, catalog.NewCatalogService(new(shelf)))
	o := usual(addr, "Catalog.find", `{"id": 1}`)
	o.IDL, o.Each = catalogIDL, true
	o.Operations = append(o.Operations, mix.Operation{Name: "broken", Weight: 1, Command: []string{"Catalog.find", `{"id": 13}`}})
	r, target := run(t, o, 100)
	f := target.Figures()
	if len(f) != 2 || f[0].Completed != r.Completed || f[0].Failed != 0 || f[1].Completed != 0 || f[1].Failed != r.Errors || r.Completed+r.Errors != 100 || min(r.Completed, r.Errors) == 0 {
		t.Errorf("%d completed, %d failed: %+v", r.Completed, r.Errors, f)
	}
	if want := "Catalog.find and broken, 1 to 1, at " + addr + " (TTHeader, binary)"; target.Name() != want {
		t.Errorf("%s, want %s", target.Name(), want)
	}
}

func TestAServerThatDoesNotListen(t *testing.T) {
	o := usual("127.0.0.1:1", "Echo.echo")
	o.Client.DialTimeout = 50 * time.Millisecond
	if _, err := Connect(t.Context(), o); err == nil || load.ErrorKind(failed(err)) != "connection refused" {
		t.Errorf("%v", err)
	}
}

func TestWrongOptions(t *testing.T) {
	command := func(words ...string) func(*Options) {
		return func(o *Options) { o.Operations[0].Command = words }
	}
	for problem, change := range map[string]func(*Options){
		"0 keys":                          func(o *Options) { o.Keys.Count = 0 },
		"values of 3 bytes":               func(o *Options) { o.Size = 3 },
		"0 callers":                       func(o *Options) { o.Callers = 0 },
		"no functions":                    func(o *Options) { o.Operations = nil },
		"both IDL and an":                 func(o *Options) { o.Echo = true },
		"none.thrift":                     func(o *Options) { o.IDL = "none.thrift" },
		"without IDL":                     func(o *Options) { o.IDL, o.Includes = "", []string{"x"} },
		"expected --idl":                  func(o *Options) { o.IDL, o.Operations[0].Command = "", []string{"A.b", "{}"} },
		"expected SERVICE.FUNCTION":       command("find"),
		"has no service Shop":             command("Shop.find"),
		"has no function buy":             command("Catalog.buy"),
		"2 arguments; expected one":       command("Catalog.find", "1", "2"),
		"field n: find_args has no field": command("Catalog.find", `{"n": 1}`),
		"arguments of Catalog.find: ":     command("Catalog.find", `{"id": "x"}`),
	} {
		o := usual("127.0.0.1:1", "Catalog.find")
		o.IDL = catalogIDL
		change(&o)
		if _, err := Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
}
