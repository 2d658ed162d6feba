package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/deptsgojay"
	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/httpfront"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Names of the subjects other than ours.
const (
	gojaySubject = "gojay"
	jsonSubject  = "encoding/json"
)

const prefix = "/depts/"

// open returns the handler of a subject with all documents in memory, and the header fields of its
// requests. end releases it.
func open(name string) (handler http.Handler, fields []string, end func() error, err error) {
	end = func() error { return nil }
	switch name {
	case load.Ours, load.Control:
		var o ours
		if o, err = newOurs(httpfront.ServiceConfig{Compression: compression}, nil); err == nil {
			handler, end = o.handler, o.cache.Close
		}
	case gojaySubject:
		handler = newStore(func(n int64) deptsgojay.Dept { return deptsgojay.Dept{Dept: depts.Make(n)} }, writeGojay)
	case jsonSubject:
		handler = newStore(newTagged, writeJSON)
	default:
		return openStep(name)
	}
	return handler, nil, end, err
}

// compression is the list of codings that a gateway offers by default.
var compression = []string{"zstd", "gzip"}

// made is an origin that generates the same documents as in the other suites.
type made struct{}

func (made) Load(_ context.Context, _ cache.ResourceID, ids []string) (cache.Batch, error) {
	b := cache.Batch{Snapshot: cache.UpTo(1)}
	for _, id := range ids {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return cache.Batch{}, err
		}
		d := depts.Make(n)
		b.Docs = append(b.Docs, cache.Loaded{Body: d.AppendJSON(nil)})
	}
	return b, nil
}

// ours is a handler of ours with its cache.
type ours struct {
	handler http.Handler
	cache   *cache.Cache
}

// newOurs builds everything between net/http and the database in a gateway: handler, service, cache
// with its promise, memory tier, and the clock of the promise.
func newOurs(config httpfront.ServiceConfig, rule *access.Rule) (ours, error) {
	tier, err := memory.New(512 << 20)
	if err != nil {
		return ours{}, err
	}
	c, err := cache.New(cache.Config{
		Resources: []cache.Resource{{Name: "depts"}}, Origin: made{}, Tiers: []cache.Tier{tier}, Clock: bootTime,
	})
	if err != nil {
		return ours{}, err
	}
	c.SetPromise(0, true, "")
	c.Advance(bootTime()+24*time.Hour, cache.UpTo(1)) // nothing changes: the promise holds for the whole run
	service, err := httpfront.NewService(c, []frontend.Resource{{Name: "depts", Access: rule}}, config)
	if err == nil {
		err = service.SetColumns(0, []resource.KeyColumn{{Name: "deptno", Kind: resource.Integer}})
	}
	if err != nil {
		_ = c.Close() // the first error is the one to report
		return ours{}, err
	}
	return ours{httpfront.Handler(service, httpfront.Config{}), c}, nil
}

// A store is a handler over structs in a map behind a RWMutex, without a router: the
// minimum that a service that encodes on each request does.
type store[D any] struct {
	// Immutable after newStore.
	write func(http.ResponseWriter, *D) error

	// Guarded by mu.
	mu      sync.RWMutex
	entries map[int64]*D
}

func newStore[D any](create func(int64) D, write func(http.ResponseWriter, *D) error) *store[D] {
	s := &store[D]{write: write, entries: map[int64]*D{}}
	for n := int64(1); n <= depts.Count; n++ {
		d := create(n)
		s.entries[n] = &d
	}
	return s
}

// ServeHTTP implements [http.Handler].
func (s *store[D]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, prefix), 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.RLock()
	d := s.entries[n]
	s.mu.RUnlock()
	if d == nil {
		http.NotFound(w, r)
		return
	}
	w.Header()["Content-Type"] = contentType
	if err := s.write(w, d); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

var contentType = []string{"application/json"}

func writeGojay(w http.ResponseWriter, d *deptsgojay.Dept) error {
	b := deptsgojay.Buffers.Get().(*deptsgojay.Buffer)
	defer deptsgojay.Buffers.Put(b)
	if err := b.Encode(d); err != nil {
		return err
	}
	_, _ = w.Write(b.Data) // a client that has disconnected cannot be notified
	return nil
}

func writeJSON(w http.ResponseWriter, d *tagged) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, _ = w.Write(text) // a client that has disconnected cannot be notified
	return nil
}

// tagged is a document for encoding/json.
type tagged struct {
	DeptNo int64       `json:"deptno"`
	DName  string      `json:"dname"`
	Loc    string      `json:"loc"`
	Emps   []taggedEmp `json:"emps"`
}

type taggedEmp struct {
	EmpNo    int64  `json:"empno"`
	DeptNo   int64  `json:"deptno"`
	EName    string `json:"ename"`
	Job      string `json:"job"`
	Mgr      int64  `json:"mgr"`
	HireDate string `json:"hiredate"`
	Sal      int64  `json:"sal"`
	Comm     *int64 `json:"comm"`
	Email    string `json:"email"`
	Phone    string `json:"phone"`
}

func newTagged(n int64) tagged {
	d := depts.Make(n)
	t := tagged{DeptNo: d.DeptNo, DName: d.DName, Loc: d.Loc}
	for _, e := range d.Emps {
		to := taggedEmp{EmpNo: e.EmpNo, DeptNo: e.DeptNo, EName: e.EName, Job: e.Job, Mgr: e.Mgr,
			HireDate: e.HireDate, Sal: e.Sal, Email: e.Email, Phone: e.Phone}
		if e.Comm != 0 {
			to.Comm = &e.Comm
		}
		t.Emps = append(t.Emps, to)
	}
	return t
}
