package config

import (
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Thrift says how documents are served to Thrift clients, apart from the addresses, which are in
// [Frontends.Thrift]. Without addresses, these settings have no effect and are refused. The zero
// value of a field means its default.
type Thrift struct {
	TLS    TLS // For all listeners of the frontend without their own.
	Limits ThriftLimits
}

// ThriftLimits bounds the use of the Thrift frontend by clients. An IPv6 network of 64 bits counts
// as one address.
type ThriftLimits struct {
	Client         Rate          // Rate of one client address. Default: no limit.
	Caller         Rate          // Rate of one API key, token subject or certificate. Default: no limit.
	RequestTimeout time.Duration // Maximum duration of a call, its load included; a client may ask for less. Default 10 s.
	IdleTimeout    time.Duration // How long a connection may stay open without a call. Default 5 min; if negative, there is no limit.
	StallTimeout   time.Duration // How long a client may read next to nothing of its replies. Default 30 s.
	Connections    int           // Maximum number of open connections; at the limit an idle one is closed for a new one. Default 17,000.
	PerAddress     int           // As in [Limits].
}

func (t *Thrift) fields() []field {
	return []field{
		{Name: "tls", Value: object(t.TLS.fields), Reload: AtRestart,
			Doc: "makes clients use TLS; if omitted, they do not"},
		{Name: "limits", Value: object(t.Limits.fields), Doc: "limits for clients of the Thrift frontend"},
	}
}

func (l *ThriftLimits) fields() []field {
	return []field{
		{Name: "client", Value: object(l.Client.fields), Reload: AtReload,
			Doc: "the rate of one client address, an IPv6 network of 64 bits counting as one; if omitted, no limit"},
		{Name: "caller", Value: object(l.Caller.fields), Reload: AtReload,
			Doc: "the rate of one API key, token subject or certificate; if omitted, no limit"},
		{Name: "request_timeout", Value: scalar(&l.RequestTimeout, requestTimeout()), Default: 10 * time.Second, Reload: AtRestart,
			Doc: "how long a call may take, its load included; the header of a call may say less"},
		{Name: "idle_timeout", Value: scalar(&l.IdleTimeout, durationOrOff(24*time.Hour)), Default: 5 * time.Minute, Reload: AtRestart,
			Doc: "how long a connection may stay open without a call; 0s means no limit"},
		{Name: "stall_timeout", Value: scalar(&l.StallTimeout, duration(leastTimeout, mostTimeout)),
			Default: 30 * time.Second, Reload: AtRestart,
			Doc: "how long a client may read next to nothing of its replies"},
		{Name: "connections", Value: scalar(&l.Connections, count(1, maxConnections)), Default: 17_000, Reload: AtRestart,
			Doc: "the maximum of open connections; at the limit an idle one is closed for a new one"},
		{Name: "connections_per_address", Value: scalar(&l.PerAddress, count(1, maxConnections)), Reload: AtRestart,
			Doc: "the maximum of open connections of one client address, an IPv6 network of 64 bits counting as one; " +
				"loopback and http.trusted_proxies are exempt; if omitted, no limit"},
	}
}

// thrift refuses settings without effect, and resources whose methods would have the same names.
func (p *parser) thrift(root value, c *Config) {
	if len(c.Frontends.Thrift) == 0 {
		if len(writeObject(c.Thrift.fields())) > 0 {
			p.failKey(within(root, "thrift"), "frontends.thrift is not set, so these settings would have no effect; expected an address there")
		}
		return
	}
	methods := make(map[string]string)
	for i := range c.Resources {
		name := c.Resources[i].Name
		method := strings.ReplaceAll(name, "-", "_")
		if other, taken := methods[method]; taken {
			p.failKey(within(root, "resources", name), "the resources %s and %s would both be the method get_%s of Thrift; expected names that differ in more than - and _",
				other, name, method)
		}
		methods[method] = name
	}
}

// maxFields is how many fields of one struct may have numbers.
const maxFields = maxColumns + maxChildren

// fieldIDs is the mapping with the numbers of a struct's fields.
func fieldIDs(f *resource.FieldIDs, depth int) setting {
	return object(func() []field { return fieldIDFields(f, depth) })
}

func fieldIDFields(f *resource.FieldIDs, depth int) []field {
	number := count(1, resource.MaxFieldID)
	ids := named(&f.Fields, "members of the document to numbers of fields", maxFields, namedOf[resource.FieldID]{
		read: func(p *parser, name string, v value) {
			one := resource.FieldID{Name: name}
			if problem := badLabel(name, maxIdentifier); problem != "" {
				p.failKey(v, "the name%s; expected the name of a member", problem)
			} else if number.read(p, v, &one.ID) {
				f.Fields = append(f.Fields, one)
				p.usedOnce(v, f)
			}
		},
		write:  func(one *resource.FieldID) (string, any) { return one.Name, number.write(one.ID) },
		names:  columnNames,
		schema: func() schema { return number.schema },
	})
	all := []field{
		// Before fields, which are compared with it.
		{Name: "reserved", Value: list(&f.Reserved, number, resource.MaxFieldID),
			Doc: "the numbers of former fields, which must never be used again"},
		{Name: "fields", Value: ids,
			Doc: "the numbers of fields, by the name of the member of the document; a member without a number is not served to Thrift clients"},
	}
	if depth == 0 {
		return all
	}
	children := named(&f.Children, "members that are lists to the numbers of their elements' fields", maxChildren, namedOf[resource.ChildFieldIDs]{
		read: func(p *parser, name string, v value) {
			c := resource.ChildFieldIDs{Name: name}
			fieldIDs(&c.FieldIDs, depth-1).read(p, v)
			f.Children = append(f.Children, c)
		},
		write: func(c *resource.ChildFieldIDs) (string, any) {
			return c.Name, writeObject(fieldIDFields(&c.FieldIDs, depth-1))
		},
		names:  columnNames,
		schema: func() schema { return schema{"$ref": "#/$defs/field_ids"} },
	})
	return append(all, field{Name: "children", Value: children,
		Doc: "the numbers of the fields of rows in lists, by the name of the member that is the list"})
}

// usedOnce refuses the last number of f if another field has it or it is reserved.
func (p *parser) usedOnce(v value, f *resource.FieldIDs) {
	last := f.Fields[len(f.Fields)-1]
	for _, other := range f.Fields[:len(f.Fields)-1] {
		if other.ID == last.ID {
			p.failAt(v, "the number %d is that of %s, too; expected each number once, the next one is %d", last.ID, other.Name, f.Next())
			return
		}
	}
	if slices.Contains(f.Reserved, last.ID) {
		p.failAt(v, "the number %d is reserved, because compiled clients know another field by it; expected %d", last.ID, f.Next())
	}
}

// thriftField is the setting of a resource's numbers.
func thriftField(r *Resource) field {
	return field{Name: "thrift", Value: fieldIDs(&r.Thrift, resource.MaxDepth), Reload: AtReload,
		Doc: "the numbers of the fields of its documents in Thrift, which slipstream idl --assign writes; if omitted, the resource is not served to Thrift clients unless sql declares it",
		Check: func(p *parser, v value) {
			if r.Query != nil {
				p.failAt(v, "documents of a statement are served to Thrift clients as JSON, so numbers of fields would have no effect; expected none")
			}
		}}
}

// fieldIDsSchema describes the numbers of fields at any depth.
func fieldIDsSchema() schema {
	return objectSchema(fieldIDFields(&resource.FieldIDs{}, 1))
}

// withTLS returns listeners with the TLS of their frontend, if they have none and are not unix sockets.
func withTLS(listeners Listeners, t TLS) Listeners {
	all := slices.Clone(listeners)
	for i, l := range all {
		if _, local := l.Unix(); l.TLS == (TLS{}) && !local {
			all[i].TLS = t
		}
	}
	return all
}
