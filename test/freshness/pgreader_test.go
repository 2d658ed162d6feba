//go:build unix

package freshness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// pgReads counts the answers that all readers got.
type pgReads struct {
	// Atomics: the readers write.
	hits, others, failed atomic.Int64
	redis, thrift        atomic.Int64 // answers over the Redis protocol and over Thrift
	disk                 atomic.Int64 // hits from disk
}

// pgReader is one client that reads and checks.
type pgReader struct {
	world  *pgWorld
	from   documents
	random *rand.Rand
	reads  *pgReads
	seen   map[string]*pgSeen
}

// pgSeen is the last document of a path: most answers contain the same bytes.
type pgSeen struct {
	body     []byte
	document *freshness.Document
}

func newPGReader(world *pgWorld, from documents, random *rand.Rand, reads *pgReads) *pgReader {
	return &pgReader{world: world, from: from, random: random, reads: reads, seen: make(map[string]*pgSeen)}
}

// step requests a random document, and reports whether there was an answer.
func (r *pgReader) step() bool {
	w := r.world
	choose := func(t *pgTable) *pgRow { return t.rows[r.random.IntN(len(t.rows))] }
	switch n := r.random.IntN(20); {
	case n < 8:
		root := choose(w.customer)
		return r.ask(fmt.Sprint("/customers/", root.id), root.model, freshness.Top, w.readCustomer)
	case n < 10:
		root := choose(w.orders)
		return r.ask(fmt.Sprint("/picks/", root.id), root.model, freshness.Anywhere, w.readPick)
	case n < 12:
		root := choose(w.orders)
		return r.ask(fmt.Sprint("/parcels/", root.id), root.model, freshness.Anywhere, w.readParcel)
	case n < 15:
		root := choose(w.dept)
		return r.ask(fmt.Sprint("/depts/", root.id), root.model, freshness.Top, w.readDept)
	case n < 19:
		root, region := choose(w.account), w.regions[r.random.IntN(len(w.regions))]
		return r.ask(fmt.Sprintf("/accounts/%s/%d", region.name, root.id), root.model, region.model, w.readAccount)
	default:
		n := r.random.IntN(len(w.sensors))
		return r.ask(fmt.Sprint("/sensors/", n+1), w.sensors[n], freshness.Top, w.readSensor)
	}
}

// ask requests one document and checks it.
func (r *pgReader) ask(path string, root, at freshness.Row, read func([]byte) ([]freshness.Shown, error)) bool {
	target, batch := path, r.random.IntN(5) == 0
	if batch { // the same document as an array of one
		name, key, _ := strings.Cut(path[1:], "/")
		target = "/" + name + "?key=" + key
	}
	start := freshness.Now()
	status, body, hit := r.from.ask(target)
	if status != 200 && status != 404 {
		r.reads.failed.Add(1)
		return false
	}
	switch r.from.(type) {
	case overRedis:
		r.reads.redis.Add(1)
	case overThrift:
		r.reads.thrift.Add(1)
	default:
		if hit {
			r.reads.hits.Add(1)
		} else {
			r.reads.others.Add(1)
		}
	}
	if batch && status == 200 {
		body = bytes.TrimSuffix(bytes.TrimPrefix(body, []byte("[")), []byte("]"))
	}
	if status == 404 || batch && string(body) == "null" {
		r.world.model.CheckMissing(root, at, start)
		return true
	}
	seen := r.seen[path]
	if seen == nil || !bytes.Equal(seen.body, body) {
		rows, err := read(body)
		if err == nil && rows[0].Row != root {
			err = errors.New("another document")
		}
		if err != nil {
			r.world.problem("GET %s: %v in %s", path, err, body)
			return true
		}
		if r.skipped(rows) {
			return true
		}
		seen = &pgSeen{body, freshness.NewDocument(rows)}
		r.seen[path] = seen
	}
	r.world.model.Check(seen.document, start)
	return true
}

// skipped reports whether a document over Thrift lacks versions because their columns have another type than the IDL
// says: compiled clients skip such fields.
func (r *pgReader) skipped(rows []freshness.Shown) bool {
	_, ok := r.from.(overThrift)
	return ok && r.world.retyped.Load() && slices.ContainsFunc(rows, func(s freshness.Shown) bool { return s.Version == 0 })
}

// row finds the row of a document in the model.
func (t *pgTable) row(id int) (*pgRow, error) {
	if id < 1 || id > len(t.rows) {
		return nil, fmt.Errorf("%s %d, which was never written", t.name, id)
	}
	return t.rows[id-1], nil
}

// show adds a row to a document and returns it as the parent of others.
func (t *pgTable) show(rows *[]freshness.Shown, id int, version uint64, parent freshness.Row, alone bool) (freshness.Row, error) {
	r, err := t.row(id)
	if err != nil {
		return 0, err
	}
	*rows = append(*rows, freshness.Shown{Row: r.model, Version: version, Parent: parent, Alone: alone})
	return r.model, nil
}

func (w *pgWorld) readCustomer(body []byte) (rows []freshness.Shown, err error) {
	type row struct {
		ID int
		V  uint64
	}
	var document struct {
		row
		Orders []struct {
			row
			Lines []struct {
				row
				Shipments []row
			}
		}
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	customer, err := w.customer.show(&rows, document.ID, document.V, freshness.Top, false)
	if err != nil {
		return nil, err
	}
	for _, o := range document.Orders {
		order, err := w.orders.show(&rows, o.ID, o.V, customer, false)
		if err != nil {
			return nil, err
		}
		for _, l := range o.Lines {
			line, err := w.line.show(&rows, l.ID, l.V, order, false)
			if err != nil {
				return nil, err
			}
			for _, s := range l.Shipments {
				if _, err := w.shipment.show(&rows, s.ID, s.V, line, false); err != nil {
					return nil, err
				}
			}
		}
	}
	return rows, nil
}

func (w *pgWorld) readPick(body []byte) (rows []freshness.Shown, err error) {
	var document struct {
		ID    int
		V     uint64
		Lines []struct {
			ID      int
			V       uint64
			Product int
			PV      *uint64 // nil if there is no such product
		}
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	order, err := w.orders.show(&rows, document.ID, document.V, freshness.Anywhere, false)
	if err != nil {
		return nil, err
	}
	for _, l := range document.Lines {
		if _, err := w.line.show(&rows, l.ID, l.V, order, true); err != nil {
			return nil, err
		}
		version, at := uint64(0), freshness.Absent
		if l.PV != nil {
			version, at = *l.PV, freshness.Top
		}
		if _, err := w.product.show(&rows, l.Product, version, at, true); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (w *pgWorld) readParcel(body []byte) (rows []freshness.Shown, err error) {
	type row struct {
		ID int
		V  uint64
	}
	var document struct {
		row
		Lines []struct {
			row
			Shipments []row
		}
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	order, err := w.orders.show(&rows, document.ID, document.V, freshness.Anywhere, false)
	if err != nil {
		return nil, err
	}
	for _, l := range document.Lines {
		line, err := w.line.show(&rows, l.ID, l.V, order, false)
		if err != nil {
			return nil, err
		}
		for _, s := range l.Shipments {
			if _, err := w.shipment.show(&rows, s.ID, s.V, line, false); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

func (w *pgWorld) readDept(body []byte) (rows []freshness.Shown, err error) {
	var document struct {
		Deptno int
		V      uint64
		Extra  uint64
		Emps   []struct {
			Empno int
			V     uint64
		}
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	dept, err := w.dept.show(&rows, document.Deptno, document.V, freshness.Top, false)
	if err != nil {
		return nil, err
	}
	rows = append(rows, freshness.Shown{Row: w.extra, Version: document.Extra, Parent: freshness.Top})
	for _, e := range document.Emps {
		if _, err := w.emp.show(&rows, e.Empno, e.V, dept, false); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (w *pgWorld) readAccount(body []byte) (rows []freshness.Shown, err error) {
	var document struct {
		ID      int
		Region  string
		V       uint64
		Entries []struct {
			ID int
			V  uint64
		}
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	region := w.regions[0]
	if document.Region != region.name {
		region = w.regions[1]
	}
	account, err := w.account.show(&rows, document.ID, document.V, region.model, false)
	if err != nil {
		return nil, err
	}
	for _, e := range document.Entries {
		if _, err := w.entry.show(&rows, e.ID, e.V, account, false); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (w *pgWorld) readSensor(body []byte) (rows []freshness.Shown, err error) {
	var document struct {
		ID       int
		V        uint64
		Readings []struct{ V uint64 }
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	if document.ID < 1 || document.ID > len(w.sensors) || len(document.Readings) != w.perSensor {
		return nil, fmt.Errorf("sensor %d with %d readings, expected %d", document.ID, len(document.Readings), w.perSensor)
	}
	for _, reading := range document.Readings {
		if reading.V != document.Readings[0].V {
			w.model.Complain("sensor %d has readings of versions %d and %d, which are always written together", document.ID, reading.V, document.Readings[0].V)
			break
		}
	}
	sensor, readings := w.sensors[document.ID-1], w.readings[document.ID-1]
	return []freshness.Shown{
		{Row: sensor, Version: document.V, Parent: freshness.Top},
		{Row: readings, Version: document.Readings[0].V, Parent: sensor},
	}, nil
}
