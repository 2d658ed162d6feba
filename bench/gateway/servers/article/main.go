// Command article is the service of the article on a read-through cache in Go, rebuilt from its
// description: structs in a map behind a RWMutex, routed by gorilla/mux, encoded as JSON by gojay
// on each request.
//
// Parts that the article's measurements of this mode do not touch are omitted: its disk
// tier, its database and its invalidation. As there, a GET looks up the struct under the
// read lock, checks that it is still valid and encodes it into a pooled buffer.
package main

import (
	"flag"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/gorilla/mux"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/deptsgojay"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

// A store is the cache in memory.
type store struct {
	// Guarded by mu.
	mu      sync.RWMutex
	entries map[int64]*entry
}

type entry struct {
	dept  deptsgojay.Dept
	valid bool // cleared when the database reports a change
}

func (s *store) get(n int64) (*deptsgojay.Dept, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e, ok := s.entries[n]
	if !ok || !e.valid {
		return nil, false
	}
	return &e.dept, true
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
	b := deptsgojay.Buffers.Get().(*deptsgojay.Buffer)
	defer deptsgojay.Buffers.Put(b)
	if err := b.Encode(d); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(b.Data) // if this fails, the client has disconnected
}

func main() {
	count := flag.Int64("documents", depts.Count, "number of `documents` in memory, from key 1")
	flag.Parse()
	s := &store{entries: map[int64]*entry{}}
	for n := int64(1); n <= *count; n++ {
		s.entries[n] = &entry{dept: deptsgojay.Dept{Dept: depts.Make(n)}, valid: true}
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
