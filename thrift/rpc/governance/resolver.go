package governance

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// A Member is one of the servers of a service.
type Member struct {
	// Addr is host:port, or the path of a Unix socket if it begins with a slash.
	Addr string
	// Weight is the member's share of calls relative to other members, at most 65,535. If zero, it defaults to 1.
	Weight int
}

const (
	// maxMembers is the maximum number of members of a pool.
	maxMembers = 1000
	// maxWeight is the maximum weight of a member, as in SRV records.
	maxWeight = 1<<16 - 1
)

// A Resolver finds the members of a service. [Static], [DNS], [SRV] and [File] are resolvers.
type Resolver interface {
	// Resolve returns all members, at most 1,000. If it returns an error or no members, a pool keeps its current members.
	// The pool calls it from one goroutine and does not modify the slice.
	Resolve(ctx context.Context) ([]Member, error)
}

// Static is a fixed list of members.
type Static []Member

// Resolve implements [Resolver].
func (s Static) Resolve(context.Context) ([]Member, error) { return s, nil }

// Lookup queries the DNS. [net.Resolver] implements it.
type Lookup interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, addrs []*net.SRV, err error)
}

// DNS finds a member for each address of a host name. In Kubernetes, use the name of a headless service, such as
// catalog.default.svc.cluster.local.
type DNS struct {
	// Addr is host:port.
	Addr string
	// Network is ip, ip4 or ip6. If empty, it defaults to ip. If servers have both IPv4 and IPv6 addresses, set ip4 or
	// ip6; otherwise each server is found twice.
	Network string
	// Lookup looks up addresses. If nil, it defaults to net.DefaultResolver.
	Lookup Lookup
}

// Resolve implements [Resolver].
func (d DNS) Resolve(ctx context.Context) ([]Member, error) {
	if err := check.Addr(d.Addr); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(d.Addr)
	if err != nil {
		return nil, fmt.Errorf("%s: address %q, expected host:port", check, d.Addr)
	}
	network := d.Network
	if network == "" {
		network = "ip"
	}
	addrs, err := lookupOf(d.Lookup).LookupNetIP(ctx, network, host)
	if err != nil {
		return nil, err
	}
	members := make([]Member, len(addrs))
	for i, addr := range addrs {
		members[i].Addr = net.JoinHostPort(addr.Unmap().String(), port)
	}
	return members, nil
}

// SRV finds the members named by DNS SRV records, with their ports and weights. Only the records with the best priority
// are used, and the clients resolve their host names. In Kubernetes, each named port of a service has such records.
type SRV struct {
	// Service and Proto are names such as thrift and tcp, without underscores. If both are empty, Name is looked up
	// directly.
	Service, Proto, Name string
	// Lookup looks up records. If nil, it defaults to net.DefaultResolver.
	Lookup Lookup
}

// Resolve implements [Resolver].
func (s SRV) Resolve(ctx context.Context) ([]Member, error) {
	_, records, err := lookupOf(s.Lookup).LookupSRV(ctx, s.Service, s.Proto, s.Name)
	if err != nil {
		return nil, err
	}
	var members []Member
	best := -1
	for _, r := range records {
		if best < 0 || int(r.Priority) < best {
			best, members = int(r.Priority), members[:0]
		}
		if int(r.Priority) == best {
			addr := net.JoinHostPort(strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port)))
			members = append(members, Member{Addr: addr, Weight: int(r.Weight)})
		}
	}
	return members, nil
}

func lookupOf(l Lookup) Lookup {
	if l == nil {
		return net.DefaultResolver
	}
	return l
}

// File is the path of a file from which members are read at each refresh: see PoolConfig.Refresh. Each line has an
// address and, if it is not 1, a weight; text after a # is ignored. If a line is invalid, the whole file is rejected.
// Replace the file by renaming a new one over it, so that a partially written file is never read.
type File string

// mostFile bounds the size of the file.
const mostFile = 1 << 20

// Resolve implements [Resolver].
func (f File) Resolve(context.Context) ([]Member, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostFile {
		return nil, fmt.Errorf("%s: %s is larger than %d bytes", check, string(f), mostFile)
	}
	return f.parse(text)
}

// parse reads the lines of the file.
func (f File) parse(text []byte) (members []Member, err error) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line, _, _ = bytes.Cut(line, []byte("#"))
		words := strings.Fields(string(line))
		if len(words) == 0 {
			continue
		}
		m := Member{Addr: words[0]}
		if len(words) == 2 {
			if m.Weight, err = strconv.Atoi(words[1]); err == nil && m.Weight < 1 {
				err = strconv.ErrRange
			}
		}
		if len(words) > 2 || err != nil {
			return nil, fmt.Errorf("%s: %s:%d: expected an address and an optional weight from 1 to %d", check, string(f), number, maxWeight)
		}
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", string(f), number, err)
		}
		members = append(members, m)
	}
	return members, nil
}

// check returns an error if the member is invalid.
func (m *Member) check() error {
	if err := check.Addr(m.Addr); err != nil {
		return err
	}
	if m.Weight < 0 || m.Weight > maxWeight {
		return fmt.Errorf("%s: weight %d of %s, expected 0 (the default) to %d", check, m.Weight, m.Addr, maxWeight)
	}
	return nil
}
