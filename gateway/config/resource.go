package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Bounds of values in a file. They are far above what anyone needs; they turn a
// typing mistake into a message instead of a gateway that cannot start.
const (
	maxResources = 1000
	maxChildren  = 64
	maxColumns   = 2000 // SQLite's default SQLITE_MAX_COLUMN
	maxKey       = 16
)

// Resource is a collection of documents and how it is served.
type Resource struct {
	resource.Resource

	// OnStale says how a GET is answered while the freshness promise cannot be kept. Default
	// [Reload].
	OnStale Policy
	// CacheControl is the Cache-Control header of its documents. The default, "no-cache", makes
	// downstream caches revalidate each time; with Access it is "private, no-cache". A max-age
	// above zero weakens the promise by that much: readers behind such a cache may get a document
	// that is older than Freshness by max-age. Directives without such a bound are refused.
	CacheControl string
	Access       *Access       // Who may read the resource. If nil, anyone may.
	MissingTTL   time.Duration // How long the absence of a row is remembered. Default 60 s; if negative, not at all.
	Load         LoadLimits

	// Thrift has the numbers of the fields of its documents for Thrift clients. A member without a
	// number is not served to them.
	Thrift resource.FieldIDs
}

// Policy is what a resource does while its freshness promise cannot be kept.
type Policy string

// Policies of a resource.
const (
	Reload      Policy = "reload"      // each GET loads from the origin
	Verify      Policy = "verify"      // wait for the stream to catch up, at most Load.Timeout, then as Reload
	Stale       Policy = "stale"       // serve what is cached, marked as stale
	Unavailable Policy = "unavailable" // answer 503
)

// LoadLimits bounds the load of one resource on the origin.
type LoadLimits struct {
	Batch       int           // Maximum number of keys in one statement. Default 256.
	Concurrency int           // Maximum number of concurrent statements. Default 4.
	Timeout     time.Duration // Maximum duration of a statement; after that its keys are loaded in halves. Default 5 s.
	Queue       int           // Maximum number of keys that wait for a statement; beyond it a GET is refused. Default 65,536.
}

// Cache-Control of resources that anyone may read, and of those with Access.
const (
	cacheOfAll = "no-cache"
	cacheOfFew = "private, no-cache"
)

func (r *Resource) fields() []field {
	table, bigint := tableField(&r.Root), scalar(&r.BigintAsString, flag("number", "string"))
	table.Required = false // because sql may be given instead
	number := bigint.write
	bigint.write = func() any {
		if r.Query != nil {
			return nil // the statement writes its numbers itself
		}
		return number()
	}
	return []field{
		table,
		{Name: "sql", Value: behind(&r.Query, querySQL), Reload: AtReloadCold,
			Check: func(_ *parser, v value) { r.Query.Line = v.line() },
			Doc: "in place of a table: a statement that selects the key columns and then the document, " +
				"as json or jsonb, of all keys in the arrays $1, $2, ..."},
		{Name: "key", Value: r.key(), Required: true, Reload: AtReloadCold,
			Doc: "the columns that form the key, in the order of the path, such as [deptno]; " +
				"with sql also their types, such as { deptno: integer }"},
		{Name: "depends", Value: r.depends(), Reload: AtReloadCold,
			Doc: "with sql: the tables whose changes affect documents, and which documents they affect"},
		columnsField(&r.Root),
		{Name: "bigint", Value: bigint, Default: false, Always: true, Reload: AtReloadCold,
			Doc: "how 64-bit integers are written: as JSON numbers, or as strings for readers whose numbers are doubles"},
		{Name: "freshness", Value: scalar(&r.Freshness, freshness()), Reload: AtReload,
			Doc: "overrides the promise of the whole file"},
		{Name: "promise", Value: scalar(&r.NoPromise, flag("kept", "none")), Default: false, Always: true, Reload: AtReloadCold,
			Doc: "none: changes are not followed; a document is kept for the time of freshness after it was loaded, and no longer"},
		{Name: "on_stale", Value: scalar(&r.OnStale, oneOf(Reload, Verify, Stale, Unavailable)), Default: Reload, Reload: AtReload,
			Doc: "how a GET is answered while the promise cannot be kept; verify waits for the stream of changes to catch up, " +
				"at most load.timeout, and answers from the cache if it does, otherwise with a load"},
		{Name: "access", Value: behind(&r.Access, (*Access).setting), Reload: AtReload,
			Doc: "who may read the resource: the holders of keys, the bearers of tokens that jwt or claims admit, " +
				"and clients by the names in their certificates; if omitted, anyone",
			Check: func(p *parser, v value) {
				if r.Access.nobody() {
					p.failAt(v, "no caller could read the resource; expected keys, jwt: true, claims or certificates, "+
						"or no access, which lets anyone read")
				}
			}},
		// After promise and access, which the check depends on.
		{Name: "cache_control", Value: scalar(&r.CacheControl, cacheControl()), Reload: AtReload,
			Doc: "the Cache-Control header of the documents; max-age above 0 weakens the promise by that much; " +
				"stale-while-revalidate and stale-if-error only with promise: none; " +
				"public and s-maxage not with access, where the default is private, no-cache",
			Default: func() any {
				if r.Access != nil {
					return cacheOfFew
				}
				return cacheOfAll
			}, Check: func(p *parser, v value) { p.cacheControl(v, r) }},
		{Name: "missing_ttl", Value: scalar(&r.MissingTTL, durationOrOff(24*time.Hour)), Default: time.Minute, Reload: AtReload,
			Doc: "how long the absence of a row is remembered; 0s means not at all"},
		{Name: "load", Value: object(r.Load.fields), Reload: AtReload,
			Doc: "limits for loads of the resource"},
		childrenField(&r.Root),
		thriftField(r),
	}
}

func (l *LoadLimits) fields() []field {
	return []field{
		{Name: "batch", Value: scalar(&l.Batch, count(1, 10_000)), Default: 256,
			Doc: "the maximum of keys in one statement"},
		{Name: "concurrency", Value: scalar(&l.Concurrency, count(1, 1024)), Default: 4,
			Doc: "the maximum of concurrent statements"},
		{Name: "timeout", Value: scalar(&l.Timeout, duration(10*time.Millisecond, 10*time.Minute)), Default: 5 * time.Second,
			Doc: "how long a statement may take before its keys are loaded in halves"},
		{Name: "queue", Value: scalar(&l.Queue, count(1, 1<<24)), Default: 1 << 16,
			Doc: "the maximum of keys that wait for a statement"},
	}
}

// resources are the mapping from names to resources.
func (c *Config) resources() setting {
	kinds := []any{schema{"required": []string{"table"}}, schema{"required": []string{"sql"}}}
	s := named(&c.Resources, "names to resources", maxResources, namedOf[Resource]{
		read: func(p *parser, name string, v value) {
			if !resourceName.MatchString(name) {
				p.failKey(v, "not the name of a resource; expected 1 to 64 of a-z, 0-9, - and _, a letter or digit first")
			}
			r := Resource{Resource: resource.Resource{Name: name, Line: v.line()}}
			p.tables = p.tables[:0]
			r.read(p, v, &c.Origin)
			c.Resources = append(c.Resources, r)
		},
		write:  func(r *Resource) (string, any) { return r.Name, writeObject(r.fields()) },
		names:  schema{"pattern": resourceName.String()},
		schema: object(new(Resource).fields).with("oneOf", kinds).schema,
	})
	s.fill = func() { fillEach(&c.Resources, (*Resource).fields) }
	s.members, s.named = new(Resource).fields, true
	return s
}

// resourceName keeps names that begin with "-", "_" or "." for the gateway's
// own pages, so that they never conflict with a resource.
var resourceName = regexp.MustCompile("^[a-z0-9][a-z0-9_-]{0,63}$")

// childFields are the fields of a list inside a document. The effect of a change is stated for
// the resource's children.
func childFields(n *resource.Node) []field {
	return []field{
		tableField(n),
		{Name: "on", Value: join(n),
			Doc: "how a row finds the row that contains it, {column: column of the containing row}; " +
				"if omitted, by the one foreign key"},
		{Name: "order", Value: list(&n.Order, orderTerm(), maxColumns),
			Doc: `the order of the rows, such as [empno, -hired]; "-" means descending`},
		columnsField(n),
		childrenField(n),
	}
}

// tableField is the table of a node, which must not contain itself.
func tableField(n *resource.Node) field {
	return field{Name: "table", Value: scalar(&n.Table, identifier("the name of a table")), Required: true, Reload: AtReloadCold,
		Doc: "the table that the rows come from", Check: func(p *parser, v value) {
			n.Line = v.line()
			// Databases fold the case of names, so two spellings are one table.
			if slices.ContainsFunc(p.tables, func(t string) bool { return strings.EqualFold(t, n.Table) }) {
				p.failAt(v, "table %q contains itself (%s); expected each table once on the way from the root",
					n.Table, strings.Join(append(slices.Clone(p.tables), n.Table), " > "))
			}
		}}
}

func columnsField(n *resource.Node) field {
	return field{Name: "columns", Value: list(&n.Columns, identifier("the name of a column"), maxColumns), Reload: AtReloadCold,
		Doc: "the columns that are served, in this order; if omitted, all of the table"}
}

// childrenField is the lists inside a row.
func childrenField(n *resource.Node) field {
	value := named(&n.Children, "names to children", maxChildren, namedOf[resource.Child]{
		read: func(p *parser, name string, v value) {
			if len(p.tables) == resource.MaxDepth {
				p.failKey(v, "nested deeper than %d levels below the root; expected a document of its own", resource.MaxDepth)
				return
			}
			switch {
			case !memberName.MatchString(name):
				p.failKey(v, "not the name of a list; expected 1 to 64 of A-Z, a-z, 0-9, - and _, a letter or _ first")
			case slices.Contains(n.Columns, name):
				p.failKey(v, "a column of %q has the same name; expected members of the document to have different names", n.Table)
			}
			child := resource.Child{Name: name}
			p.tables = append(p.tables, n.Table)
			readObject(p, v, childFields(&child.Node))
			p.tables = p.tables[:len(p.tables)-1]
			n.Children = append(n.Children, child)
		},
		write:  func(c *resource.Child) (string, any) { return c.Name, writeObject(childFields(&c.Node)) },
		names:  schema{"pattern": memberName.String()},
		schema: func() schema { return schema{"$ref": "#/$defs/child"} },
	})
	return field{Name: "children", Value: value, Reload: AtReloadCold,
		Doc: "lists of rows inside the document, by the name of the JSON member"}
}

// memberName allows what is a name in every language that reads JSON.
var memberName = regexp.MustCompile("^[A-Za-z_][A-Za-z0-9_-]{0,63}$")

// join is { column of the child: column of the parent }.
func join(n *resource.Node) setting {
	return pairs(&n.On, "columns of this table to columns of the containing row's table", maxKey,
		identifier("the name of a column of the containing row's table"), columnNames, badColumn("the name of a column"),
		func(j *resource.Join) (name, text *string) { return &j.Column, &j.Parent })
}

// columnNames describes columns that are the keys of a mapping.
var columnNames = schema{"minLength": 1, "maxLength": maxIdentifier}

// badColumn says what is wrong with such a column.
func badColumn(expected string) func(string) string {
	return func(name string) string {
		if problem := badLabel(name, maxIdentifier); problem != "" {
			return fmt.Sprintf("the column%s; expected %s", problem, expected)
		}
		return ""
	}
}

// orderTerm is a column, with "-" before it for descending.
func orderTerm() kind[resource.Order] {
	column := keyword[string](`the name of a column, with "-" before it for descending`, func(s string) string {
		return cmp.Or(when(s == "-", " is a sign without a column"), badLabel(s, maxIdentifier))
	}, schema{"type": "string", "minLength": 1, "maxLength": maxIdentifier + 1, "pattern": "^-?."})
	return converted(column, func(s string) resource.Order {
		name, descending := strings.CutPrefix(s, "-")
		return resource.Order{Column: name, Descending: descending}
	}, func(o resource.Order) string {
		if o.Descending {
			return "-" + o.Column
		}
		return o.Column
	}).unlike(func(a, b resource.Order) bool { return strings.EqualFold(a.Column, b.Column) })
}
