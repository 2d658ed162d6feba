package protobufrpc_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc/internal/catalog"
)

func TestMain(m *testing.M) {
	buf.Check() // overwrites released memory, so that use after release is detected
	os.Exit(m.Run())
}

// patience is how long a test waits for a condition.
const patience = 30 * time.Second

// Methods used by the tests.
var (
	find   = protobufrpc.MustMethod[*catalog.FindRequest, *catalog.Product](catalog.File_catalog_proto, "Catalog.Find")
	echo   = protobufrpc.MustMethod[*catalog.Text, *catalog.Text](catalog.File_catalog_proto, "Catalog.Echo")
	forget = &protobufrpc.Method[*catalog.Text, *catalog.Text]{Function: rpc.Function{Service: "Catalog", Name: "Forget", Oneway: true}}
	// missing is a method that servers do not have.
	missing = &protobufrpc.Method[*catalog.Text, *catalog.Text]{Function: rpc.Function{Service: "Catalog", Name: "Missing"}}
)

// products is a handler.
type products struct {
	forgotten atomic.Int64
	gate      chan struct{} // Echo("wait") waits for it
}

func (*products) Find(_ context.Context, req *catalog.FindRequest) (*catalog.Product, error) {
	return product(req.GetId()), nil
}

// product returns a product with a value in each field.
func product(id int64) *catalog.Product {
	note := "a note"
	return &catalog.Product{
		Id: id, Title: fmt.Sprintf("product %d", id), Tags: []string{"a", "", "b"}, Prices: map[string]float64{"EUR": 1.5, "": -1},
		Parts: []*catalog.Product{{Id: 1}, {Title: "part"}}, Note: &note, Stock: []int32{-1, 0, 1 << 30},
		Picture: &catalog.Product_Png{Png: []byte("png")}, Codes: []uint64{1, 1 << 63}, Variants: map[int32]*catalog.Product{-1: {Id: 9}},
	}
}

func (p *products) Echo(ctx context.Context, req *catalog.Text) (*catalog.Text, error) {
	switch kind, text, _ := strings.Cut(req.GetText(), " "); kind {
	case "fail":
		return nil, errors.New(text)
	case "invalid":
		return nil, errors.New("not UTF-8: \xff")
	case "panic":
		panic(text)
	case "nil":
		return nil, nil
	case "status":
		return nil, &rpc.StatusError{Code: 7, Message: text, Details: map[string]string{"a": "b"}}
	case "protocol":
		return nil, &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: text}
	case "negative":
		return nil, &thrift.ApplicationException{Kind: -5, Message: text}
	case "forgotten":
		return &catalog.Text{Text: fmt.Sprint(p.forgotten.Load())}, nil
	case "wait":
		select {
		case <-p.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "header":
		got := make(map[rpc.Meta]bool)
		for _, one := range rpc.Received(ctx) {
			got[one] = true
		}
		until, _ := ctx.Deadline()
		if !got[tenant] || !got[user] {
			return &catalog.Text{Text: fmt.Sprint(rpc.Received(ctx))}, nil
		}
		return &catalog.Text{Text: fmt.Sprint("a b ", time.Until(until).Milliseconds())}, nil
	}
	return req, nil
}

func (p *products) Forget(_ context.Context, req *catalog.Text) (*catalog.Text, error) {
	p.forgotten.Add(int64(len(req.GetText())))
	return nil, nil
}

// Metadata of calls with a header.
var tenant, user = rpc.Meta{Key: "TENANT", Value: "a", Persistent: true}, rpc.Meta{Key: "USER", Value: "b"}

// service returns the service with p as its handler.
func (p *products) service() *rpc.Service {
	return &rpc.Service{Name: "Catalog", Methods: []rpc.Method{find.Handle(p.Find), echo.Handle(p.Echo), forget.Handle(p.Forget)}}
}

// serve starts a server and returns it.
func serve(t testing.TB, config rpc.ServerConfig, services ...*rpc.Service) *rpc.Server {
	t.Helper()
	testkit.NoLeaks(t)
	s, err := rpc.NewServer(config, services...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = s.Shutdown(ctx) // some tests have already called it
	})
	return s
}

// connect returns a client. If no timeout is set, it uses one that is long enough for a slow machine.
func connect(t testing.TB, c rpc.ClientConfig) *rpc.Client {
	t.Helper()
	c.Timeout = cmp.Or(c.Timeout, 5*time.Minute)
	client, err := rpc.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// transports lists the transports that support Protobuf messages.
var transports = []rpc.Transport{rpc.TTHeader, rpc.TTHeaderFramed, rpc.Framed}

// kindOf returns the kind of the exception in an error, or -1.
func kindOf(err error) int32 {
	if e, ok := errors.AsType[*thrift.ApplicationException](err); ok {
		return e.Kind
	}
	return -1
}
