//go:build ignore

// A Kitex server or client for catalog.proto, used by foreign_test.go:
//
//	kitex server PORT KIND
//	kitex client PORT TRANSPORT
//
// KIND is default, or mux for a server that answers in any order. The test generates the package gen/catalog with Kitex's
// tool and builds the program.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/pkg/remote"
	"github.com/cloudwego/kitex/pkg/rpcinfo"
	"github.com/cloudwego/kitex/pkg/serviceinfo"
	"github.com/cloudwego/kitex/pkg/transmeta"
	"github.com/cloudwego/kitex/server"
	"github.com/cloudwego/kitex/transport"

	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/catalog"
	service "github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/catalog/catalog"
)

func main() {
	klog.SetLevel(klog.LevelFatal)
	addr := net.JoinHostPort("127.0.0.1", os.Args[2])
	var err error
	switch os.Args[1] {
	case "server":
		err = serve(addr, os.Args[3])
	case "client":
		err = call(addr, os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type handler struct {
	catalog.Catalog // for streaming methods, which are not called

	forgotten atomic.Int64
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

// same reports whether p is product(id).
func same(p *catalog.Product, id int64) bool {
	want := product(id)
	png, ok := p.GetPicture().(*catalog.Product_Png)
	return p.GetId() == id && p.GetTitle() == want.Title && slices.Equal(p.GetTags(), want.Tags) && maps.Equal(p.GetPrices(), want.Prices) &&
		len(p.GetParts()) == 2 && p.Parts[0].GetId() == 1 && p.Parts[1].GetTitle() == "part" && p.GetNote() == "a note" && slices.Equal(p.GetStock(), want.Stock) &&
		ok && string(png.Png) == "png" && slices.Equal(p.GetCodes(), want.Codes) && len(p.GetVariants()) == 1 && p.Variants[-1].GetId() == 9
}

func (*handler) Find(_ context.Context, req *catalog.FindRequest) (*catalog.Product, error) {
	return product(req.GetId()), nil
}

func (h *handler) Echo(ctx context.Context, req *catalog.Text) (*catalog.Text, error) {
	switch kind, text, _ := strings.Cut(req.GetText(), " "); kind {
	case "fail":
		return nil, errors.New(text)
	case "status":
		return nil, kerrors.NewBizStatusErrorWithExtra(7, text, map[string]string{"a": "b"})
	case "forgotten":
		return &catalog.Text{Text: fmt.Sprint(h.forgotten.Load())}, nil
	case "header": // the metadata and the remaining milliseconds of the call
		tenant, _ := metainfo.GetPersistentValue(ctx, "TENANT")
		user, _ := metainfo.GetValue(ctx, "USER")
		return &catalog.Text{Text: fmt.Sprint(tenant, " ", user, " ", rpcinfo.GetRPCInfo(ctx).Config().RPCTimeout().Milliseconds())}, nil
	}
	return req, nil
}

func (h *handler) Forget(_ context.Context, req *catalog.Text) (*catalog.Text, error) {
	h.forgotten.Add(int64(len(req.GetText())))
	return nil, nil
}

// info describes the service. Its method Forget is oneway: Kitex supports oneway Protobuf methods, but its tool does
// not generate them.
func info() *serviceinfo.ServiceInfo {
	s := service.NewServiceInfo()
	m := s.Methods["Forget"]
	s.Methods["Forget"] = serviceinfo.NewMethodInfo(func(ctx context.Context, h, args, _ any) error {
		_, err := h.(catalog.Catalog).Forget(ctx, args.(*service.ForgetArgs).Req)
		return err
	}, m.NewArgs, nil, true)
	return s
}

func serve(addr, kind string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	options := []server.Option{server.WithListener(l), server.WithMetaHandler(transmeta.ServerTTHeaderHandler)}
	if kind == "mux" {
		options = append(options, server.WithMuxTransport())
	}
	s := server.NewServer(options...)
	if err := s.RegisterService(info(), new(handler)); err != nil {
		return err
	}
	return s.Run()
}

var transports = map[string]transport.Protocol{"framed": transport.Framed, "ttheader": transport.TTHeader, "ttheader-framed": transport.TTHeaderFramed}

func call(addr, format string) error {
	options := []client.Option{client.WithHostPorts(addr), client.WithTransportProtocol(transports[format]), client.WithRPCTimeout(time.Minute), client.WithDestService("catalog")}
	header := strings.HasPrefix(format, "ttheader")
	if header {
		options = append(options, client.WithMetaHandler(transmeta.ClientTTHeaderHandler))
		if err := callWith(append(slices.Clone(options), client.WithMuxConnection(1)), header); err != nil {
			return fmt.Errorf("multiplexed: %w", err)
		}
	}
	return callWith(options, header)
}

// caller calls the methods of the service.
type caller struct{ client.Client }

func (c caller) echo(ctx context.Context, text string) (string, error) {
	var result service.EchoResult
	err := c.Call(ctx, "Echo", &service.EchoArgs{Req: &catalog.Text{Text: text}}, &result)
	return result.GetSuccess().GetText(), err
}

func (c caller) forgotten(ctx context.Context) (int, error) {
	text, err := c.echo(ctx, "forgotten")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func callWith(options []client.Option, header bool) error {
	whole, err := client.NewClient(info(), options...)
	if err != nil {
		return err
	}
	c := caller{whole}
	ctx := context.Background()
	for id := range int64(100) {
		var result service.FindResult
		if err := c.Call(ctx, "Find", &service.FindArgs{Req: &catalog.FindRequest{Id: id}}, &result); err != nil || !same(result.GetSuccess(), id) {
			return fmt.Errorf("found %v, %w", result.GetSuccess(), err)
		}
	}
	for _, size := range []int{0, 1, 70 << 10, 2 << 20} {
		text := strings.Repeat("x", size)
		if got, err := c.echo(ctx, text); got != text || err != nil {
			return fmt.Errorf("echo of %d bytes: %d, %w", size, len(got), err)
		}
	}
	before, err := c.forgotten(ctx)
	if err != nil {
		return err
	}
	for range 10 {
		if err := c.Call(ctx, "Forget", &service.ForgetArgs{Req: &catalog.Text{Text: "12345"}}, nil); err != nil {
			return fmt.Errorf("a oneway call: %w", err)
		}
	}
	for now := before; now != before+50; {
		if now, err = c.forgotten(ctx); err != nil {
			return err
		}
	}
	if _, err := c.echo(ctx, "fail broken"); kindOf(err) != remote.InternalError || !strings.Contains(err.Error(), "broken") {
		return fmt.Errorf("a handler's error: kind %d, %w", kindOf(err), err)
	}
	if _, err := c.echo(ctx, "invalid"); kindOf(err) != remote.InternalError || !strings.Contains(err.Error(), "not UTF-8: \uFFFD") {
		return fmt.Errorf("a handler's error that is not UTF-8: kind %d, %w", kindOf(err), err)
	}
	if header {
		if err := callWithHeader(ctx, c); err != nil {
			return err
		}
	}
	return callMissing(ctx, options)
}

// callMissing calls a method that the server does not have.
func callMissing(ctx context.Context, options []client.Option) error {
	s := info()
	s.Methods["Missing"] = s.Methods["Echo"]
	c, err := client.NewClient(s, options...)
	if err != nil {
		return err
	}
	var result service.EchoResult
	if err := c.Call(ctx, "Missing", &service.EchoArgs{Req: &catalog.Text{}}, &result); kindOf(err) != remote.UnknownMethod {
		return fmt.Errorf("a method that the server does not have: kind %d, %w", kindOf(err), err)
	}
	return nil
}

// callWithHeader makes calls that need a header.
func callWithHeader(ctx context.Context, c caller) error {
	text, err := c.echo(metainfo.WithValue(metainfo.WithPersistentValue(ctx, "TENANT", "a"), "USER", "b"), "header")
	if err != nil {
		return err
	}
	left := 0
	if _, err := fmt.Sscanf(text, "a b %d", &left); err != nil || left <= 0 || left > 60_000 {
		return fmt.Errorf("the server received %q", text)
	}
	_, err = c.echo(ctx, "status sold out")
	status, ok := kerrors.FromBizStatusError(err)
	if !ok || status.BizStatusCode() != 7 || status.BizMessage() != "sold out" || status.BizExtra()["a"] != "b" {
		return fmt.Errorf("a status: %w", err)
	}
	return nil
}

// kindOf returns the kind of the exception in an error, or -1.
func kindOf(err error) int32 {
	var e *remote.TransError
	if errors.As(err, &e) {
		return e.TypeID()
	}
	return -1
}
