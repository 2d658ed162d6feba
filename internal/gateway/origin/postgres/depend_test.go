package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// invoices is a document over four tables: two have its key, one leads to it
// through one other table and one through two.
func invoices() resource.Resource {
	r := query(`select o.id, json_build_object('customer', (select name from customer c where c.id = o.customer), 'lines', (
			select json_agg(json_build_object('no', l.no, 'price', p.price, 'tags', (
				select json_agg(k.title order by k.id) from product_category pc join category k on k.id = pc.category_id where pc.product_id = p.id)) order by l.no)
			from line l left join product p on p.id = l.product_id where l.order_id = o.id))
		from orders o where o.id = any($1)`, queryKey("id", "bigint"),
		on("orders", "id"), on("line", "order_id"),
		via("customer", "select id from orders where customer = any($1)", "id"),
		via("product", "select order_id from line c where c.product_id = any($1)", "id"),
		via("product_category", "select order_id from line where product_id = any($1)", "product_id"),
		via("category", "select order_id from product_category pc join line using (product_id) where pc.category_id = any($1)", "id"))
	r.Name, r.Key = "invoices", []string{"id"}
	return r
}

// randomChange is a transaction of a few statements that writers of orders make.
func randomChange(n func(int) int) string {
	statements := []func() string{
		func() string { return fmt.Sprintf("UPDATE customer SET name = name || '!' WHERE id = %d", 1+n(2)) },
		func() string { return fmt.Sprintf("UPDATE orders SET customer = %d WHERE id = %d", 1+n(3), 1+n(30)) },
		func() string { return fmt.Sprintf("UPDATE product SET price = price + 1 WHERE id = %d", 1+n(20)) },
		func() string {
			return fmt.Sprintf("UPDATE line SET product_id = %d WHERE order_id = %d", 1+n(20), 1+n(30))
		},
		func() string {
			return fmt.Sprintf("UPDATE line SET order_id = %d, no = 100 + nextval('counter') WHERE order_id = %d AND no < 3", 1+n(30), 1+n(30))
		},
		func() string { return fmt.Sprintf("DELETE FROM line WHERE product_id = %d", 1+n(20)) },
		func() string { return fmt.Sprintf("DELETE FROM product WHERE id = %d", 1+n(20)) },
		func() string {
			return fmt.Sprintf("INSERT INTO product (id, price) VALUES (%d, 5) ON CONFLICT (id) DO UPDATE SET price = product.price * 2", 1+n(20))
		},
		func() string { return fmt.Sprintf("UPDATE category SET title = title || 'x' WHERE id = %d", 1+n(3)) },
		func() string {
			return fmt.Sprintf("INSERT INTO product_category VALUES (%d, %d) ON CONFLICT DO NOTHING", 1+n(20), 1+n(3))
		},
		func() string {
			return fmt.Sprintf("UPDATE product_category SET product_id = 100 + nextval('counter') WHERE category_id = %d AND product_id < %d", 1+n(3), n(20))
		},
		func() string { return fmt.Sprintf("DELETE FROM orders WHERE id = %d", 1+n(30)) },
		func() string {
			return fmt.Sprintf("INSERT INTO orders SELECT %d, '2026-02-02', 2 WHERE NOT EXISTS (SELECT FROM orders WHERE id = %[1]d)", 1+n(30))
		},
		func() string { return fmt.Sprintf("UPDATE orders SET placed = '2025-06-06' WHERE id = %d", 1+n(30)) }, // to another partition
		// The rows that each via starts from are deleted, inserted, and moved.
		func() string { return fmt.Sprintf("DELETE FROM customer WHERE id = %d", 1+n(3)) },
		func() string {
			return fmt.Sprintf("INSERT INTO customer (id, name) VALUES (%d, 'new') ON CONFLICT DO NOTHING", 1+n(3))
		},
		func() string { return fmt.Sprintf("DELETE FROM category WHERE id = %d", 1+n(3)) },
		func() string {
			return fmt.Sprintf("INSERT INTO category (id, title) VALUES (%d, 'new') ON CONFLICT DO NOTHING", 1+n(3))
		},
		func() string {
			return fmt.Sprintf("DELETE FROM product_category WHERE product_id BETWEEN %d AND %[1]d + 5", 1+n(20))
		},
		func() string {
			return fmt.Sprintf("UPDATE product_category SET category_id = 1 + category_id %% 3 WHERE product_id = %d AND category_id = %d", 1+n(20), 1+n(3))
		},
		func() string {
			p := 1 + n(20)
			return fmt.Sprintf("DELETE FROM product WHERE id = %d; DELETE FROM line WHERE product_id = %[1]d; DELETE FROM product_category WHERE product_id = %[1]d", p)
		},
	}
	var text []string
	for range 1 + n(3) {
		text = append(text, statements[n(len(statements))]())
	}
	return strings.Join(text, "; ")
}

// Whatever random transactions change, every document that differs afterwards is
// found by the derivations from what the triggers recorded.
func TestChangesNameEveryDocument(t *testing.T) {
	server := freshDatabase(t)
	conn, err := pgx.Connect(t.Context(), server.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	mustExec(t, conn, orderSchema)
	o := openOrigin(t, Config{URL: server.url}, invoices())
	if _, err := o.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := resolveOne(t, conn, invoices())
	if c.Err != nil {
		t.Fatal(c.Err)
	}
	rnd := testkit.Rand(t)
	ids := make([]string, 30)
	for i := range ids {
		ids[i] = strconv.Itoa(i + 1)
	}
	before := loadKeys(t, conn, c, 1<<20, ids)
	differed, named := 0, 0
	for range 150 {
		mustExec(t, conn, "DELETE FROM slipstream.change")
		change := randomChange(rnd.IntN)
		if _, err := conn.Exec(t.Context(), "BEGIN; "+change+"; COMMIT"); err != nil {
			pg, ok := errors.AsType[*pgconn.PgError](err)
			if !ok || pg.Code != "23505" { // a random row may exist already
				t.Fatalf("%s: %v", change, err)
			}
			mustExec(t, conn, "ROLLBACK")
			continue
		}
		after := loadKeys(t, conn, c, 1<<20, ids)
		keys := changedKeys(t, conn, c)
		named += len(keys)
		for i, id := range ids {
			if slices.Equal(texts(before[i+1]), texts(after[i+1])) {
				continue
			}
			differed++
			if !slices.Contains(keys, id) {
				t.Fatalf("document %s changed, and only %s are named, by\n%s\nbefore %s\nafter  %s", id, keys, change, texts(before[i+1]), texts(after[i+1]))
			}
		}
		before = after
	}
	if differed < 100 {
		t.Errorf("only %d documents changed", differed)
	}
	t.Logf("%d documents changed, %d keys were named", differed, named)
}

// A forbidden via is refused: one that reads its own table finds neither the
// document of a deleted row nor the one that a row was moved away from. The same
// changes are observed if via starts from key.
func TestViaNeedsKeysThatLeadOnwards(t *testing.T) {
	for name, tt := range map[string]struct {
		depend resource.Depend
		want   map[string]string
	}{
		"key leads onwards": {via("orders", "select c.id from customer c where c.id = any($1)", "customer"), map[string]string{
			"DELETE FROM orders WHERE id = 3": "2", "UPDATE orders SET customer = 1 WHERE id = 5": "1 2"}},
		"via reads its own table": {itself(via("orders", "select customer from orders where id = any($1)", "id")), map[string]string{
			"DELETE FROM orders WHERE id = 3": "", "UPDATE orders SET customer = 1 WHERE id = 5": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := freshDatabase(t, orderSchema)
			conn := connect(t, d.url)
			r := query(totals, idKey, on("customer", "id"), tt.depend)
			r.Name, r.Key = "things", []string{"id"}
			if _, err := openOrigin(t, Config{URL: d.url}, r).Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			c := resolveOne(t, conn, r)
			if c.Err != nil {
				t.Fatal(c.Err)
			}
			for change, want := range tt.want {
				mustExec(t, conn, "DELETE FROM slipstream.change")
				mustExec(t, conn, change)
				if got := strings.Join(changedKeys(t, conn, c), " "); got != want {
					t.Errorf("%s names %q, want %q", change, got, want)
				}
			}
		})
	}
}

// changedKeys returns the keys of documents that the change table names.
func changedKeys(t *testing.T, conn *pgx.Conn, c *compiled) (keys []string) {
	t.Helper()
	recorded := make(map[string][]string)
	rows, err := conn.Query(t.Context(), "SELECT DISTINCT source, key FROM slipstream.change WHERE key IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	var name, key string
	if _, err := pgx.ForEachRow(rows, []any{&name, &key}, func() error {
		recorded[name] = append(recorded[name], key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.sources {
		for _, key := range recorded[s.recorded] {
			if s.derive == "" {
				keys = append(keys, key)
			} else {
				keys = append(keys, derived(t, conn, s, key)...)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
