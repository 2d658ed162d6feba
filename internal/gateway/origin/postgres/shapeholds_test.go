package postgres

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/shapes"
)

// holds loads documents and validates them.
func holds(t *testing.T, o *Origin, i int, ids []string) {
	t.Helper()
	batch, err := o.Load(t.Context(), cache.ResourceID(i), ids)
	if err != nil {
		t.Fatal(err)
	}
	shapes.Hold(t, o.set.Load().Resources[i].Name, o.KeyColumns(i), o.Shape(i), batch.Docs)
}

// Documents with values of every type, and every document of two schemas, match the
// OpenAPI document.
func TestShapesHold(t *testing.T) {
	pg := testkit.StartPostgres(t)
	t.Run("types", func(t *testing.T) {
		o := openOrigin(t, Config{URL: pg.URL}, sampleTable(t, pg.URL), resource.Resource{
			Name: "quoted", Key: []string{"id"}, BigintAsString: true, Root: resource.Node{Table: "sample"}})
		for i := range o.set.Load().Resources {
			holds(t, o, i, []string{"0", "1", "2", "99"})
		}
	})
	for script, resources := range map[string][]resource.Resource{"film.sql": filmResources(), "orders.sql": orderResources()} {
		t.Run(script, func(t *testing.T) {
			runScript(t, pg.URL, "CREATE DATABASE "+strings.TrimSuffix(script, ".sql"))
			url := strings.Replace(pg.URL, "/postgres?", "/"+strings.TrimSuffix(script, ".sql")+"?", 1)
			runScript(t, url, script)
			o := openOrigin(t, Config{URL: url}, resources...)
			conn := connect(t, url)
			for i, c := range o.schema.Load().resources {
				holds(t, o, i, allIDs(t, conn, c))
			}
		})
	}
}
