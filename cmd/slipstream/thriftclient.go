package main

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// idlFlags are the flags of commands that read the IDL of a service.
type idlFlags struct {
	file     string
	includes []string
}

func (f *idlFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&f.file, "idl", "f", "", "the `file` that declares the service")
	flags.StringArrayVarP(&f.includes, "include", "I", nil, "a `directory` that is searched for included files; may be repeated")
	_ = c.MarkFlagFilename("idl", "thrift") // these fail only if there is no such flag
	_ = c.MarkFlagDirname("include")
}

// load returns the file. The error lists all mistakes.
func (f *idlFlags) load() (*idl.File, error) {
	p, err := idl.Load(idl.Config{Dirs: f.includes}, f.file)
	if err != nil {
		return nil, err
	}
	return p.Roots[0], nil
}

// transports are the values of --transport.
var transports = map[string]rpc.Transport{
	"ttheader": rpc.TTHeader, "ttheader-framed": rpc.TTHeaderFramed, "framed": rpc.Framed, "buffered": rpc.Buffered,
}

// thriftClientFlags are the flags of commands that call Thrift services.
type thriftClientFlags struct {
	transport, protocol string
	multiplexed, secure bool
	certificates        certificates
}

func (f *thriftClientFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.transport, "transport", "ttheader", "`how` messages are delimited: ttheader, ttheader-framed, framed or buffered")
	flags.StringVar(&f.protocol, "protocol", "binary", "the `protocol`, binary or compact")
	flags.BoolVar(&f.multiplexed, "multiplexed", false, "write the name of the service before that of the function, for framed and buffered")
	flags.BoolVar(&f.secure, "tls", false, "use TLS")
	f.certificates.register(c)
}

// defaultThriftPort is the port of addresses without one.
const defaultThriftPort = "9090"

// config returns the configuration of a client of the server at an address.
func (f *thriftClientFlags) config(addr string) (o rpc.ClientConfig, err error) {
	addr = withPort(addr, defaultThriftPort)
	transport, known := transports[f.transport]
	switch {
	case !known:
		return o, fmt.Errorf("--transport %q; expected ttheader, ttheader-framed, framed or buffered", f.transport)
	case f.protocol != "binary" && f.protocol != "compact":
		return o, fmt.Errorf("--protocol %q; expected binary or compact", f.protocol)
	case f.multiplexed && hasHeader(transport):
		return o, fmt.Errorf("--multiplexed with --transport %s, which sends the name in another place; expected framed or buffered", f.transport)
	case f.certificates.given() && !f.secure:
		return o, errors.New("a certificate or server name without TLS; expected --tls")
	}
	o = rpc.ClientConfig{Addr: addr, Transport: transport, Compact: f.protocol == "compact", Multiplexed: f.multiplexed}
	if f.secure {
		o.TLS = new(tls.Config)
		err = f.certificates.apply(o.TLS)
	}
	return o, err
}

// hasHeader reports whether messages have a header, with metadata and a deadline.
func hasHeader(t rpc.Transport) bool { return t == rpc.TTHeader || t == rpc.TTHeaderFramed }
