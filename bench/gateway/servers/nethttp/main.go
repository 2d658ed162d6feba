// Command nethttp serves prepared responses with net/http: the minimum that a Go service on the
// standard library does for a document that it already has.
//
// ServeMux with the pattern "GET /depts/{id}", a map that is never written, and
// header values made beforehand. It sends Content-Type, Content-Length,
// Cache-Control and a strong ETag and answers a matching If-None-Match with 304,
// by comparing strings: lists, weak tags and "*" are not understood. With -cert and -key
// it speaks TLS, and HTTP/2 with clients that support it.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"net"
	"net/http"
	"strconv"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

// A document is a body with the header fields that depend on it, in the form that the header map
// requires.
type document struct {
	body   []byte
	etag   []string
	length []string
}

var (
	contentType  = []string{"application/json"}
	cacheControl = []string{"no-cache"}
)

func main() {
	cert := flag.String("cert", "", "a `file` with a certificate, in PEM; if empty, clear text")
	key := flag.String("key", "", "the `file` of its key")
	flag.Parse()
	documents := map[string]*document{}
	for n := int64(1); n <= depts.Count; n++ {
		d := depts.Make(n)
		body := d.AppendJSON(nil)
		sum := sha256.Sum256(body)
		documents[strconv.FormatInt(n, 10)] = &document{
			body:   body,
			etag:   []string{`"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`},
			length: []string{strconv.Itoa(len(body))},
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /depts/{id}", func(w http.ResponseWriter, r *http.Request) {
		d := documents[r.PathValue("id")]
		if d == nil {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h["Etag"] = d.etag
		h["Cache-Control"] = cacheControl
		if match := r.Header["If-None-Match"]; len(match) == 1 && match[0] == d.etag[0] {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h["Content-Type"] = contentType
		h["Content-Length"] = d.length
		_, _ = w.Write(d.body) // if this fails, the client has disconnected
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.Announce(listener); err != nil {
		sidecar.Fatal(err)
	}
	if *cert == "" {
		sidecar.Fatal(http.Serve(listener, mux))
	}
	sidecar.Fatal(http.ServeTLS(listener, mux, *cert, *key))
}
