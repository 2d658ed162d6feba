// Command article-bbolt is the bbolt mode of the service of the article on a
// read-through cache in Go, rebuilt from its description: documents that were
// stored as ready JSON are looked up by key in a bbolt file; net/http, gorilla/mux.
//
// With -fill it first writes the file as the article does: documents in the order in which they
// were requested, which here is random, with one transaction for each 10,000. Parts that the
// article's measurements do not touch are omitted: its database, its invalidation, and its cache in
// memory, which is disabled in this mode.
//
// What the article does not specify is chosen in its favor: keys are 8 bytes in numerical order,
// reading transactions keep no statistics (which the bbolt of its time could not disable), and a
// document is copied directly from the mapped file into net/http's buffer.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/mux"
	"go.etcd.io/bbolt"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

// batch is the number of documents that the article saves at a time.
const batch = 10_000

var bucket = []byte("dept")

func keyOf(n int64) (key [8]byte) {
	binary.BigEndian.PutUint64(key[:], uint64(n))
	return key
}

var errNoDocument = errors.New("no document with this key")

type service struct{ db *bbolt.DB }

// serve writes the document inside the transaction that found it. net/http copies
// it into its buffer, which has room for all of it: no client, however slow, keeps a
// transaction open.
func (s service) serve(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.ParseInt(mux.Vars(r)["id"], 10, 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key := keyOf(n)
	err = s.db.View(func(tx *bbolt.Tx) error {
		document := tx.Bucket(bucket).Get(key[:])
		if document == nil {
			return errNoDocument
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(document) // if this fails, the client has disconnected
		return nil
	})
	switch {
	case errors.Is(err, errNoDocument):
		http.NotFound(w, r)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// fill writes documents 1 to count.
func fill(db *bbolt.DB, count int) error {
	order := rand.New(rand.NewPCG(1, 3)).Perm(count)
	for len(order) > 0 {
		part := order[:min(batch, len(order))]
		order = order[len(part):]
		err := db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			for _, i := range part {
				n := int64(i) + 1
				d := depts.Make(n)
				key := keyOf(n)
				// Put keeps the value until the commit, so each has its own memory.
				if err := b.Put(key[:], d.AppendJSON(nil)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("save %d documents: %w", len(part), err)
		}
	}
	return nil
}

func main() {
	path := flag.String("path", "", "`path` of the bbolt file")
	count := flag.Int("fill", 0, "first write this many `documents`")
	flag.Parse()
	if err := run(*path, *count); err != nil {
		sidecar.Fatal(err)
	}
}

func run(path string, count int) (err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoStatistics: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if count > 0 {
		if err := fill(db, count); err != nil {
			return err
		}
	}
	router := mux.NewRouter()
	router.HandleFunc("/depts/{id:[0-9]+}", service{db}.serve).Methods(http.MethodGet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := sidecar.Announce(listener); err != nil {
		return err
	}
	return http.Serve(listener, router)
}
