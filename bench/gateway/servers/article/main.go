// Command article is the service of the article on a read-through cache in Go,
// rebuilt from its description: structs in a map behind a RWMutex, routed by
// gorilla/mux, turned into JSON on each request by gojay.
//
// What the article's measurements do not touch is left out: its disk tier, its
// database and its invalidation. As there, a GET looks up the struct under the
// read lock, checks that it is still valid and encodes it into a pooled buffer.
package main

import (
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/francoispqt/gojay"
	"github.com/gorilla/mux"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

// A dept tells gojay how to write a document.
type dept struct{ depts.Dept }

func (d *dept) IsNil() bool { return d == nil }

func (d *dept) MarshalJSONObject(enc *gojay.Encoder) {
	enc.Int64Key("deptno", d.DeptNo)
	enc.StringKey("dname", d.DName)
	enc.StringKey("loc", d.Loc)
	enc.ArrayKey("emps", emps(d.Emps))
}

type emps []depts.Emp

func (e emps) IsNil() bool { return e == nil }

func (e emps) MarshalJSONArray(enc *gojay.Encoder) {
	for i := range e {
		enc.Object((*emp)(&e[i]))
	}
}

type emp depts.Emp

func (e *emp) IsNil() bool { return e == nil }

func (e *emp) MarshalJSONObject(enc *gojay.Encoder) {
	enc.Int64Key("empno", e.EmpNo)
	enc.Int64Key("deptno", e.DeptNo)
	enc.StringKey("ename", e.EName)
	enc.StringKey("job", e.Job)
	enc.Int64Key("mgr", e.Mgr)
	enc.StringKey("hiredate", e.HireDate)
	enc.Int64Key("sal", e.Sal)
	enc.Int64KeyNullEmpty("comm", e.Comm)
	enc.StringKey("email", e.Email)
	enc.StringKey("phone", e.Phone)
}

// A store is the cache in memory.
type store struct {
	// Guarded by mu.
	mu      sync.RWMutex
	entries map[int64]*entry
}

type entry struct {
	dept  dept
	valid bool // cleared when the database reports a change
}

func (s *store) get(n int64) (*dept, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.entries[n]
	if !ok || !e.valid {
		return nil, false
	}
	return &e.dept, true
}

// buffers keeps the memory of answers; a pool of pointers, or each Put would
// allocate.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

type buffer struct{ data []byte }

func (b *buffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	return len(p), nil
}

func (s *store) serve(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(mux.Vars(r)["id"], 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d, ok := s.get(n)
	if !ok {
		http.NotFound(w, r)
		return
	}
	b := buffers.Get().(*buffer)
	defer buffers.Put(b)
	b.data = b.data[:0]
	enc := gojay.BorrowEncoder(b)
	err = enc.EncodeObject(d)
	enc.Release()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(b.data) // the client is gone if this fails
}

func main() {
	s := &store{entries: map[int64]*entry{}}
	for n := int64(1); n <= depts.Count; n++ {
		s.entries[n] = &entry{dept: dept{depts.Make(n)}, valid: true}
	}
	router := mux.NewRouter()
	router.HandleFunc("/depts/{id:[0-9]+}", s.serve).Methods(http.MethodGet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.Announce(listener); err != nil {
		sidecar.Fatal(err)
	}
	sidecar.Fatal(http.Serve(listener, router))
}
