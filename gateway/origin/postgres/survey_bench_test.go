package postgres

import (
	"os"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// BenchmarkSurvey reads the catalogs for a tree of tables and a statement with two vias.
func BenchmarkSurvey(b *testing.B) {
	url := testkit.StartPostgres(b).URL
	text, err := os.ReadFile("../../../cmd/slipstream/testdata/pgfreshness.sql")
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
	for name, resources := range map[string][]resource.Resource{"tables": {tree}, "statement": {parcels}} {
		b.Run(name, func(b *testing.B) {
			o := openOrigin(b, Config{URL: url}, resources...)
			if _, err := o.Apply(b.Context()); err != nil {
				b.Fatal(err)
			}
			s := o.Stream(func() time.Duration { return 0 })
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
