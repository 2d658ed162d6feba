package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/slipstream-go/slipstream/examples/foo/ladder"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A handlerTarget is a handler that is called without a network, or the floor.
type handlerTarget struct {
	service   http.Handler // nil for the floor
	exchanges []exchange
}

func newHandlerTarget(version string, exchanges []exchange) (*handlerTarget, error) {
	t := &handlerTarget{exchanges: exchanges}
	if version == floorName {
		return t, nil
	}
	var err error
	t.service, err = ladder.New(version)
	return t, err
}

// NewCaller implements [load.Target].
func (t *handlerTarget) NewCaller(_ context.Context, i int) (load.Caller, error) {
	if t.service == nil {
		return newFloorCaller(t.exchanges)
	}
	request, err := http.NewRequest(http.MethodGet, "/foo", nil)
	if err != nil {
		return nil, err
	}
	c := &handlerCaller{target: t, request: request, header: http.Header{}, next: i}
	request.Body = io.NopCloser(&c.body)
	return c, nil
}

// A handlerCaller makes requests and checks their answers.
type handlerCaller struct {
	target  *handlerTarget
	request *http.Request
	body    bytes.Reader
	header  http.Header
	next    int

	// Of the current answer.
	status int
	rest   []byte // the part that must still arrive
	wrong  bool
}

// Do implements [load.Caller].
func (c *handlerCaller) Do(context.Context) error {
	e := &c.target.exchanges[c.next%len(c.target.exchanges)]
	c.next++
	c.body.Reset(e.body)
	c.request.ContentLength = int64(len(e.body))
	clear(c.header)
	c.status, c.rest, c.wrong = http.StatusOK, e.answer, false
	c.target.service.ServeHTTP(c, c.request)
	if c.status != http.StatusOK || c.wrong || len(c.rest) > 0 {
		return fmt.Errorf("foo: status %d, and the answer is wrong %d bytes before its end", c.status, len(c.rest))
	}
	return nil
}

// Close implements [load.Caller].
func (c *handlerCaller) Close() error { return nil }

// Header implements [http.ResponseWriter].
func (c *handlerCaller) Header() http.Header { return c.header }

// WriteHeader implements [http.ResponseWriter].
func (c *handlerCaller) WriteHeader(status int) { c.status = status }

// Write implements [http.ResponseWriter].
func (c *handlerCaller) Write(p []byte) (int, error) {
	rest, ok := bytes.CutPrefix(c.rest, p)
	c.rest, c.wrong = rest, c.wrong || !ok
	return len(p), nil
}

// A floorCaller computes the hashes of strings that are already in memory in the form to be hashed,
// and the texts of the hashes. It reads and writes no JSON.
type floorCaller struct {
	requests []floorRequest
	next     int
	texts    []byte
}

type floorRequest struct {
	strings [][]byte // both strings of each object
	texts   []byte   // of all hashes
}

func newFloorCaller(exchanges []exchange) (*floorCaller, error) {
	c := new(floorCaller)
	for _, e := range exchanges {
		var objects []map[string]string
		var answer struct{ Hashes []string }
		if err := json.Unmarshal(e.body, &objects); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(e.answer, &answer); err != nil {
			return nil, err
		}
		var r floorRequest
		for i, o := range objects {
			r.strings = append(r.strings, []byte(o[asTagged]+o["str_b"]))
			r.texts = append(r.texts, answer.Hashes[i]...)
		}
		c.requests = append(c.requests, r)
	}
	return c, nil
}

// Do implements [load.Caller].
func (c *floorCaller) Do(context.Context) error {
	r := &c.requests[c.next%len(c.requests)]
	c.next++
	c.texts = c.texts[:0]
	for _, s := range r.strings {
		sum := sha256.Sum256(s)
		c.texts = base64.StdEncoding.AppendEncode(c.texts, sum[:])
	}
	if !bytes.Equal(c.texts, r.texts) {
		return fmt.Errorf("foo: the hashes are %.80q, want %.80q", c.texts, r.texts)
	}
	return nil
}

// Close implements [load.Caller].
func (c *floorCaller) Close() error { return nil }
