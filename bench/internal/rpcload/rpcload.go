// Package rpcload contains what the programs of the suites of package rpcsuite share: each is a
// server of the services of rpcsuite/idl, and a load process that calls them. The programs themselves
// need generated code of one implementation each, and are built by the suite.
package rpcload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"

	"github.com/slipstream-go/slipstream/bench/internal/httpget"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
)

// A Client calls the service. All methods except Close are safe for concurrent use.
type Client interface {
	// Echo sends a note and returns the text and the number of the returned note.
	Echo(ctx context.Context, text string, number int64) (string, int64, error)
	// Sleep returns the returned number.
	Sleep(ctx context.Context, milliseconds int32) (int32, error)
	Close() error
}

// A Messenger is a Client of the service Messages.
type Messenger interface {
	// Pass returns the function with which one caller sends a message with a key and gets the
	// result of the server.
	Pass(m *shapes.Message) func(ctx context.Context, key int64) (Passed, error)
}

// Passed holds what a client reads from a returned message.
type Passed struct {
	Key   int64 // one more than the key that was sent
	Name  string
	Host  string
	Port  int32
	Items int
	Price float64 // of the first item
}

// PassedOf returns the expected result for a message with a key.
func PassedOf(m *shapes.Message, key int64) Passed {
	return Passed{Key: key + 1, Name: m.Name, Host: m.Origin.Host, Port: m.Origin.Port, Items: len(m.Items), Price: m.Items[0].Price}
}

// A Setting describes the work of a client.
type Setting struct {
	Address string
	// Callers is how many goroutines will use the client concurrently: a user would choose the size
	// of a pool accordingly.
	Callers int
	TLS     *tls.Config // nil for clear text
}

// A Serving holds the settings of a server.
type Serving struct {
	Address string      // to listen on
	TLS     *tls.Config // nil for clear text
}

// A Program is an implementation of the service: its variants as a server and as a client, by name.
type Program struct {
	// Servers return as soon as they accept connections.
	Servers map[string]func(Serving) (net.Addr, error)
	Clients map[string]func(context.Context, Setting) (Client, error)
}

// Main implements a program: a load process if it was started as one, otherwise the server selected
// by the flags.
func Main(p Program) {
	loadproc.Child(p.targets())
	if err := p.serve(); err != nil {
		sidecar.Fatal(err)
	}
	select {} // until it is killed
}

func (p Program) serve() error {
	name := flag.String("server", "", "`name` of the server to run")
	cert := flag.String("cert", "", "`file` of the certificate; if empty, clear text")
	key := flag.String("key", "", "`file` of its key")
	flag.Parse()
	serve := p.Servers[*name]
	if serve == nil {
		return fmt.Errorf("no server %q", *name)
	}
	s := Serving{Address: "127.0.0.1:0"}
	if *cert != "" {
		certificate, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			return err
		}
		s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	addr, err := serve(s)
	if err != nil {
		return err
	}
	return sidecar.AnnounceAddr(addr)
}

// trust returns the configuration with which a client trusts a certificate of package subject, or
// nil without one.
func trust(pem []byte) (*tls.Config, error) {
	if pem == nil {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("rpcload: the certificate is not in PEM")
	}
	return &tls.Config{RootCAs: roots, ServerName: httpget.Host}, nil
}
