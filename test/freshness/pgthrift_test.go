package freshness

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

const thriftItems = `
CREATE TABLE item (gone text, id int PRIMARY KEY, name text NOT NULL, price numeric(30,2), at timestamptz, data jsonb);
INSERT INTO item VALUES ('x', 42, 'chair', 12345678901234567890.50, '2026-01-02 03:04:05+00', '{"a": [1]}'), ('y', 43, 'table', NULL, NULL, NULL);
`

// thriftShop writes a configuration over a database. middle follows the line of the resource.
func thriftShop(t *testing.T, url, middle string) (file, address, admin string) {
	t.Helper()
	address, admin = fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	return blackbox.WriteFile(t, "shop.yaml", fmt.Sprintf(`origin: { url: %q } # the shop
resources:
  items:
    table: item # all of it
    key: [id]
%s  names:
    sql: SELECT id, to_jsonb(name) FROM item WHERE id = ANY ($1)
    key: { id: integer }
    depends: [{ table: item, key: [id] }]
frontends: { http: "127.0.0.1:%d", thrift: %q }
admin: %q
`, url, middle, testkit.FreePort(t), address, admin)), address, "http://" + admin
}

// compiled is a client as a compiler of Apache Thrift makes it: it knows fields by their numbers.
type compiled struct {
	t                         *testing.T
	client                    *thrift.TStandardClient
	compact                   *thrift.TStandardClient // the same in the Compact protocol
	id, name, price, at, data int16
}

// item reads the fields of a struct that a compiled client knows, as text.
type item struct {
	of        *compiled
	fields    map[int16]string
	exception string
}

type keyArgs struct{ key string }

func (a *keyArgs) Write(ctx context.Context, p thrift.TProtocol) error {
	for _, step := range []func() error{
		func() error { return p.WriteStructBegin(ctx, "args") },
		func() error { return p.WriteFieldBegin(ctx, "key", thrift.STRING, 1) },
		func() error { return p.WriteString(ctx, a.key) },
		func() error { return p.WriteFieldEnd(ctx) },
		func() error { return p.WriteFieldStop(ctx) },
		func() error { return p.WriteStructEnd(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (a *keyArgs) Read(context.Context, thrift.TProtocol) error { return nil }

func (i *item) Write(context.Context, thrift.TProtocol) error { return nil }

// Read reads the result of a call.
func (i *item) Read(ctx context.Context, p thrift.TProtocol) error {
	i.fields = make(map[int16]string)
	return structure(ctx, p, func(id int16, of thrift.TType) error {
		if id != 0 || of != thrift.STRUCT {
			i.exception = fmt.Sprint(id)
			return p.Skip(ctx, of)
		}
		return structure(ctx, p, func(id int16, of thrift.TType) error {
			switch of {
			case thrift.STRING:
				text, err := p.ReadString(ctx)
				i.fields[id] = text
				return err
			case thrift.I32:
				n, err := p.ReadI32(ctx)
				i.fields[id] = fmt.Sprint(n)
				return err
			}
			return p.Skip(ctx, of)
		})
	})
}

// structure reads a struct, each of its fields by read.
func structure(ctx context.Context, p thrift.TProtocol, read func(id int16, of thrift.TType) error) error {
	if _, err := p.ReadStructBegin(ctx); err != nil {
		return err
	}
	for {
		_, of, id, err := p.ReadFieldBegin(ctx)
		if err != nil {
			return err
		}
		if of == thrift.STOP {
			return p.ReadStructEnd(ctx)
		}
		if err := read(id, of); err != nil {
			return err
		}
		if err := p.ReadFieldEnd(ctx); err != nil {
			return err
		}
	}
}

// get returns the fields of a document by their numbers, or the number of the exception.
func (c *compiled) get(key string) (fields map[int16]string, exception string, err error) {
	i := &item{of: c}
	if _, err = c.client.Call(c.t.Context(), "get_items", &keyArgs{key}, i); err != nil {
		return nil, "", err
	}
	other := &item{of: c}
	if _, err = c.compact.Call(c.t.Context(), "get_items", &keyArgs{key}, other); err != nil {
		return nil, "", fmt.Errorf("in the Compact protocol: %w", err)
	}
	if !maps.Equal(i.fields, other.fields) || i.exception != other.exception {
		err = fmt.Errorf("%v, exception %q; in the Compact protocol %v, exception %q", i.fields, i.exception, other.fields, other.exception)
	}
	return i.fields, i.exception, err
}

// connect connects Apache's library for Go to a gateway.
func (c *compiled) connect(address string) {
	c.t.Helper()
	config := &thrift.TConfiguration{ConnectTimeout: 20 * time.Second, SocketTimeout: 20 * time.Second}
	transport := thrift.NewTFramedTransportConf(thrift.NewTSocketConf(address, config), config)
	testkit.Eventually(c.t, 20*time.Second, transport.Open)
	c.t.Cleanup(func() { transport.Close() })
	p := thrift.NewTBinaryProtocolConf(transport, config)
	c.client = thrift.NewTStandardClient(p, p)
	transport = thrift.NewTFramedTransportConf(thrift.NewTSocketConf(address, config), config)
	testkit.Eventually(c.t, 20*time.Second, transport.Open)
	c.t.Cleanup(func() { transport.Close() })
	q := thrift.NewTCompactProtocolConf(transport, config)
	c.compact = thrift.NewTStandardClient(q, q)
}

// awaitItem waits for a document with a name, and checks that all fields are what they were when the client was compiled.
func (c *compiled) awaitItem(key, name, price string) {
	c.t.Helper()
	testkit.Eventually(c.t, 20*time.Second, func() error {
		got, exception, err := c.get(key)
		if err == nil && (exception != "" || got[c.id] != key || got[c.name] != name || got[c.price] != price) {
			err = fmt.Errorf("item %s: %v, exception %q; expected %s, %s", key, got, exception, name, price)
		}
		return err
	})
}

// numberOf returns the number of a field in an IDL.
func numberOf(t *testing.T, idl, field string) (id int16) {
	t.Helper()
	for line := range strings.Lines(idl) {
		var of, name string
		if _, err := fmt.Sscanf(line, "  %d: optional %s %s", &id, &of, &name); err == nil && name == field {
			return id
		}
	}
	t.Fatalf("the IDL has no field %s\n%s", field, idl)
	return 0
}

// TestPostgresKeepsThriftNumbers: the numbers of fields are those of the file. A dropped column, a table that was swapped
// by RENAME, a reload and a restored dump, all of which change the numbers of columns in PostgreSQL, leave compiled
// clients right.
func TestPostgresKeepsThriftNumbers(t *testing.T) {
	t.Setenv("SLIPSTREAM_POSTGRES", "") // a pg_dump refuses a server that is newer; the system's fits the system's
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, thriftItems)
	file, address, admin := thriftShop(t, pg.URL, "")
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "", "resource items is not served to Thrift clients", "config", "check", "-c", file)
	blackbox.Expect(t, blackbox.ExitOK, "get_names", "resource items is not served to Thrift clients", "idl", "-c", file)
	idl := blackbox.Expect(t, blackbox.ExitOK, "struct Items {", "", "idl", "-c", file, "--assign").Stdout
	if text := read(t, file); !strings.Contains(text, "    table: item # all of it\n    key: [id]\n    thrift:\n      fields:\n        gone: 1\n        id: 2\n") {
		t.Fatalf("the file is\n%s", text)
	}
	c := &compiled{t: t, id: numberOf(t, idl, "id"), name: numberOf(t, idl, "name"), price: numberOf(t, idl, "price"), at: numberOf(t, idl, "at"), data: numberOf(t, idl, "data")}
	blackbox.Serving(t, file)
	c.connect(address)
	const price = "12345678901234567890.50"
	c.awaitItem("42", "chair", price)
	if got, _, err := c.get("42"); err != nil || got[c.at] != "2026-01-02T03:04:05Z" || got[c.data] != `{"a": [1]}` {
		t.Errorf("%v %v", got, err)
	}
	if _, exception, err := c.get("44"); err != nil || exception != "1" {
		t.Errorf("a row that does not exist: exception %q, %v", exception, err)
	}

	// A dropped column: its number becomes reserved.
	pg.PSQL(t, "ALTER TABLE item DROP COLUMN gone")
	blackbox.Expect(t, blackbox.ExitOK, "", "numbers of members that documents do not have: gone", "config", "check", "-c", file)
	c.awaitItem("42", "chair", price)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "idl", "-c", file, "--assign")
	if text := read(t, file); strings.Contains(text, "gone") || !strings.Contains(text, "reserved: [1]") {
		t.Fatalf("the file is\n%s", text)
	}
	reload := func() {
		t.Helper()
		if status, a := blackbox.AskReload(t, "POST", admin); status != 200 {
			t.Fatalf("reload: %d %+v", status, a)
		}
	}
	reload()
	c.awaitItem("42", "chair", price)

	// A table that takes the place of the old one, with columns in another order and a new one.
	pg.PSQL(t, `CREATE TABLE next (price numeric(30,2), extra text, data jsonb, name text NOT NULL, at timestamptz, id int PRIMARY KEY);
		INSERT INTO next SELECT price, 'new', data, name || ' of next', at, id FROM item;
		BEGIN; ALTER TABLE item RENAME TO old; ALTER TABLE next RENAME TO item; COMMIT`)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", file)
	c.awaitItem("42", "chair of next", price)
	blackbox.Expect(t, blackbox.ExitOK, "", "these members have no number in thrift.fields, and are not served to Thrift clients: extra", "config", "check", "-c", file)
	again := blackbox.Expect(t, blackbox.ExitOK, "", "", "idl", "-c", file, "--assign").Stdout
	if n := numberOf(t, again, "extra"); n != 7 {
		t.Errorf("the number of a new column is %d, want 7", n)
	}
	reload()
	c.awaitItem("42", "chair of next", price)
	if got, _, err := c.get("42"); err != nil || got[7] != "new" {
		t.Errorf("the new column: %v %v", got, err)
	}

	// A dump is restored into another database, where dropped columns have left no gaps.
	pg.PSQL(t, "ALTER TABLE item DROP COLUMN data; ALTER TABLE item ADD COLUMN data jsonb; UPDATE item SET name = 'restored'")
	dump, err := pg.Dump(t, "postgres").Output()
	if err != nil {
		t.Fatal(err)
	}
	script := blackbox.WriteFile(t, "dump.sql", string(dump))
	pg.PSQL(t, "CREATE DATABASE restored TEMPLATE template0")
	restored := strings.Replace(pg.URL, "/postgres?", "/restored?", 1)
	pg.Restore(t, "restored", script)
	text := read(t, file)
	_, numbers, _ := strings.Cut(text, "key: [id]\n")
	numbers, _, _ = strings.Cut(numbers, "  names:")
	other, address, _ := thriftShop(t, restored, numbers)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", other)
	if got := blackbox.Expect(t, blackbox.ExitOK, "", "", "idl", "-c", other).Stdout; got != again {
		t.Errorf("the IDL of the restored database is\n%s\nwant\n%s", got, again)
	}
	blackbox.Serving(t, other)
	d := *c
	d.connect(address)
	d.awaitItem("42", "restored", price)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
