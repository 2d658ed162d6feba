package governance

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// zone is a DNS for tests.
type zone struct {
	addrs   map[string][]string // by network and host
	records map[string][]*net.SRV
}

func (z zone) LookupNetIP(_ context.Context, network, host string) (all []netip.Addr, err error) {
	for _, text := range z.addrs[network+" "+host] {
		all = append(all, netip.MustParseAddr(text))
	}
	if all == nil {
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return all, err
}

func (z zone) LookupSRV(_ context.Context, service, proto, name string) (string, []*net.SRV, error) {
	all := z.records[service+" "+proto+" "+name]
	if all == nil {
		return "", nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return name, all, nil
}

func TestMembersByDNS(t *testing.T) {
	const name = "catalog.default.svc.cluster.local"
	z := zone{
		addrs: map[string][]string{"ip " + name: {"10.0.0.1", "::ffff:10.0.0.2", "fd00::1"}, "ip4 " + name: {"10.0.0.1"}},
		records: map[string][]*net.SRV{"thrift tcp " + name: {
			{Target: "b." + name + ".", Port: 9091, Priority: 20, Weight: 5},
			{Target: "a." + name + ".", Port: 9090, Priority: 10, Weight: 0},
			{Target: "c." + name + ".", Port: 9092, Priority: 10, Weight: 7},
			{Target: "d." + name + ".", Port: 9093, Priority: 30, Weight: 1},
		}},
	}
	for _, c := range []struct {
		resolver Resolver
		want     []Member
	}{
		{Static{{Addr: "a:1"}, {Addr: "/run/b.sock", Weight: 3}}, []Member{{Addr: "a:1"}, {Addr: "/run/b.sock", Weight: 3}}},
		{DNS{Addr: name + ":9090", Lookup: z}, []Member{{Addr: "10.0.0.1:9090"}, {Addr: "10.0.0.2:9090"}, {Addr: "[fd00::1]:9090"}}},
		{DNS{Addr: name + ":9090", Network: "ip4", Lookup: z}, []Member{{Addr: "10.0.0.1:9090"}}},
		{SRV{Service: "thrift", Proto: "tcp", Name: name, Lookup: z}, []Member{{Addr: "a." + name + ":9090"}, {Addr: "c." + name + ":9092", Weight: 7}}},
	} {
		got, err := c.resolver.Resolve(t.Context())
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%T: %v, %v, want %v", c.resolver, got, err, c.want)
		}
	}
	for _, r := range []Resolver{DNS{Addr: "other:9090", Lookup: z}, SRV{Name: "other", Lookup: z}} {
		var cause *net.DNSError
		if got, err := r.Resolve(t.Context()); !errors.As(err, &cause) || got != nil {
			t.Errorf("%T of an unknown name: %v, %v", r, got, err)
		}
	}
	for _, addr := range []string{"catalog", ":9090", "/run/a.sock"} {
		if _, err := (DNS{Addr: addr, Lookup: z}).Resolve(t.Context()); err == nil {
			t.Errorf("address %q was accepted", addr)
		}
	}
}

// A file is accepted as a whole or not at all, and errors name the line.
func TestMembersOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "members")
	for _, c := range []struct {
		text string
		want []Member
		fail string
	}{
		{"# members of catalog\na:1\n\n  b:2 7 # the large one\n/run/c.sock\n", []Member{{Addr: "a:1"}, {Addr: "b:2", Weight: 7}, {Addr: "/run/c.sock"}}, ""},
		{"", nil, ""},
		{"a:1\nb:2 x\n", nil, "members:2: expected an address and an optional weight from 1 to 65535"},
		{"a:1 0\n", nil, "members:1: expected an address and an optional weight from 1"},
		{"a:1 2 3\n", nil, "members:1: expected an address and an optional weight from 1"},
		{"a:1 65536\n", nil, "members:1: thrift/rpc/governance: weight 65536 of a:1, expected 0 (the default) to 65535"},
		{"a:1\nb", nil, `members:2: thrift/rpc/governance: address "b", expected host:port`},
		{strings.Repeat("#", mostFile+1), nil, "is larger than 1048576 bytes"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := File(path).Resolve(t.Context())
		if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%.40q: %v, %v, want %v, %q", c.text, got, err, c.want, c.fail)
		}
	}
	if _, err := File(path + ".none").Resolve(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
