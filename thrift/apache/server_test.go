package apache_test

import (
	"context"
	"errors"
	"net"
	"reflect"
	"testing"
	"time"

	lib "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/apache"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// A server and a client of Apache Thrift exchange structs of slipstream gen thrift.
func TestServerAndClientOfApacheThrift(t *testing.T) {
	config := &lib.TConfiguration{ConnectTimeout: 30 * time.Second, SocketTimeout: 30 * time.Second}
	for name, protocols := range map[string]lib.TProtocolFactory{
		"binary":  lib.NewTBinaryProtocolFactoryConf(config),
		"compact": lib.NewTCompactProtocolFactoryConf(config),
		"header":  lib.NewTHeaderProtocolFactoryConf(config),
	} {
		t.Run(name, func(t *testing.T) {
			transports := lib.NewTFramedTransportFactoryConf(lib.NewTTransportFactory(), config)
			if name == "header" {
				transports = lib.NewTTransportFactory() // the header protocol has its own frames
			}
			listener, err := lib.NewTServerSocket("127.0.0.1:0")
			if err == nil {
				err = listener.Listen()
			}
			if err != nil {
				t.Fatal(err)
			}
			server := lib.NewTSimpleServer4(newShop(), listener, transports, protocols)
			served := make(chan error, 1)
			go func() { served <- server.Serve() }() // Stop stops it, and the test waits for it.
			defer func() {
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
				<-served
			}()
			call(t, listener.Addr(), transports, protocols, config)
		})
	}
}

func call(t *testing.T, addr net.Addr, transports lib.TTransportFactory, protocols lib.TProtocolFactory, config *lib.TConfiguration) {
	transport, err := transports.GetTransport(lib.NewTSocketFromAddrConf(addr, config))
	if err != nil {
		t.Fatal(err)
	}
	if err := transport.Open(); err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	p := protocols.GetProtocol(transport)
	client := lib.NewTStandardClient(p, p)
	ctx := t.Context()

	args := shop.OrdersFindArgs{Query: &shop.Query{ID: thrift.Some[shop.OrderID](17)}}
	var result shop.OrdersFindResult
	if _, err := client.Call(ctx, "forget", apache.Wrap(&shop.OrdersForgetArgs{ID: 1}), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(ctx, "find", apache.Wrap(&args), apache.Wrap(&result)); err != nil {
		t.Fatal(err)
	}
	if o := result.Success; o == nil || o.ID != 17 || !o.Paid || string(o.Payload) != "\xff\x00" || o.Attrs["gift"] != "yes" ||
		!reflect.DeepEqual(o.Codes, []int64{1, -1}) || o.Lines[0].Sku != "spoon" || o.States[7][0] != shop.StatusPaid {
		t.Errorf("the result is %v", &result)
	}
	args.Query.ID.V = 18
	result.Reset()
	if _, err := client.Call(ctx, "find", apache.Wrap(&args), apache.Wrap(&result)); err != nil || result.Missing == nil || result.Missing.ID != 18 {
		t.Errorf("%v: the result is %v", err, &result)
	}
	_, err = client.Call(ctx, "lose", apache.Wrap(&args), apache.Wrap(&result))
	if unknown, ok := errors.AsType[lib.TApplicationException](err); !ok || unknown.TypeId() != lib.UNKNOWN_METHOD {
		t.Errorf("%v: expected an error for an unknown function", err)
	}
}

// A Struct is unchanged after the library of Apache Thrift has written and read it, in all of its
// protocols that do not distinguish strings from binaries.
func TestWrappedStructsInProtocolsOfApacheThrift(t *testing.T) {
	ctx := context.Background()
	want := &shop.Numbers{ABool: true, AnI8: -1, AnI16: 300, AnI32: -70000, AnI64: 1 << 40, ADouble: 2.5, AUUID: thrift.UUID{1, 15: 2}, AString: "é", ABinary: []byte("\xff")}
	for name, factory := range map[string]lib.TProtocolFactory{
		"binary": lib.NewTBinaryProtocolFactoryConf(nil), "compact": lib.NewTCompactProtocolFactoryConf(nil),
	} {
		buffer := lib.NewTMemoryBuffer()
		p := factory.GetProtocol(buffer)
		var got shop.Numbers
		if err := apache.Wrap(want).Write(ctx, p); err != nil {
			t.Fatal(name, err)
		}
		if err := p.Flush(ctx); err != nil {
			t.Fatal(name, err)
		}
		if err := apache.Wrap(&got).Read(ctx, p); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v, want %v", name, err, &got, want)
		}
	}
	for name, p := range map[string]lib.TProtocol{
		"JSON": lib.NewTJSONProtocol(lib.NewTMemoryBuffer()), "simple JSON": lib.NewTSimpleJSONProtocolConf(lib.NewTMemoryBuffer(), nil),
	} {
		for _, err := range []error{apache.Wrap(want).Write(ctx, p), apache.Wrap(new(shop.Numbers)).Read(ctx, p)} {
			if bad, ok := errors.AsType[lib.TProtocolException](err); !ok || bad.TypeId() != lib.NOT_IMPLEMENTED {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
