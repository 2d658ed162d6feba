package postgres

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// benchmarked starts a server with the tables of the freshness tests and returns
// a tree of tables and a statement with a via.
func benchmarked(b *testing.B) (url string, resources map[string]resource.Resource) {
	b.Helper()
	url = testkit.StartPostgres(b).URL
	text, err := os.ReadFile("../../../../cmd/slipstream/testdata/pgfreshness.sql")
	if err != nil {
		b.Fatal(err)
	}
	runScript(b, url, string(text))
	parcels := query(`SELECT o.id, json_build_object('id', o.id, 'v', o.v, 'lines', (
		SELECT coalesce(json_agg(json_build_object('id', l.id, 'v', l.v, 'shipments', (
		  SELECT coalesce(json_agg(json_build_object('id', s.id, 'v', s.v)), '[]')
		  FROM shipment s WHERE s.line_id = l.id))), '[]')
		FROM line l WHERE l.order_id = o.id)) FROM orders o WHERE o.id = ANY($1)`, queryKey("id", "integer"),
		on("orders", "id"), on("line", "order_id"), via("shipment", "SELECT order_id FROM line WHERE id = ANY($1)", "line_id"))
	parcels.Name = "parcels"
	tree := resource.Resource{Name: "customers", Key: []string{"id"}, Root: resource.Node{Table: "customer", Children: []resource.Child{
		{Name: "orders", Node: resource.Node{Table: "orders"}}}}}
	return url, map[string]resource.Resource{"tables": tree, "statement": parcels}
}

// BenchmarkSurvey reads the catalogs.
func BenchmarkSurvey(b *testing.B) {
	url, resources := benchmarked(b)
	for name, r := range resources {
		b.Run(name, func(b *testing.B) {
			o := openOrigin(b, Config{URL: url}, r)
			if _, err := o.Apply(b.Context()); err != nil {
				b.Fatal(err)
			}
			s := o.Stream(func() time.Duration { return 0 })
			var err error
			if s.conn, err = o.connectOne(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer s.disconnect()
			for b.Loop() {
				if _, err := s.look(b.Context(), goneBack{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPoll polls while nothing changes, with and without the check of the schema.
func BenchmarkPoll(b *testing.B) {
	url, resources := benchmarked(b)
	for name, check := range map[string]bool{"idle": false, "idle-check": true} {
		b.Run(name, func(b *testing.B) {
			o := openOrigin(b, Config{URL: url}, resources["tables"], resources["statement"])
			if _, err := o.Apply(b.Context()); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			clock := func() time.Duration { return time.Since(began) }
			s := o.Stream(clock)
			s.sink = &recorder{clock: clock, promises: map[cache.ResourceID]string{}}
			defer s.disconnect()
			if err := s.poll(b.Context(), false); err != nil {
				b.Fatal(err)
			}
			defer s.helpers.Wait()
			for b.Loop() {
				if intact, err := s.readOn(context.Background(), 0, check); err != nil || !intact {
					b.Fatal(intact, err)
				}
			}
		})
	}
}
