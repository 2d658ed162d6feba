package httpload

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/slipstream-go/slipstream/internal/bench/replay"
)

// A sequel is what a Target needs to send the requests of a file.
type sequel struct {
	file      *replay.File
	rest      []byte // of each request, after its target
	get, head request
	// logged means that the status in the log counts as right if it is between 400 and 499.
	logged bool
}

// newSequel returns the sequel for the requests of a file, and its name.
func (o *Options) newSequel(u *url.URL) (*sequel, string, error) {
	if o.Method != "" || len(o.Body) > 0 || len(o.Mix) > 0 {
		return nil, "", errors.New("both requests of a file and a method, a body or a mix; expected only one of them")
	}
	at := &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: "/"}
	get, _, err := o.newRequest(at)
	if err != nil {
		return nil, "", err
	}
	if get.template != nil {
		return nil, "", fmt.Errorf("%s in a header; requests of a file cannot have keys", keyPlace)
	}
	s := &sequel{file: o.Replay, rest: get.bytes[len("GET /"):], get: get, head: get, logged: o.Statuses == ""}
	s.head.bodyless = true
	return s, fmt.Sprintf("%d requests of %s at %s://%s", o.Replay.Len(), o.Replay.Name, u.Scheme, u.Host), nil
}

// follow selects the next request of the file. After the last one, it starts again with the first.
func (c *caller) follow() {
	t := c.target
	s := t.sequel
	next := s.file.Request(int((t.turn.Add(1) - 1) % int64(s.file.Len())))
	method := http.MethodGet
	c.request, c.logged = &s.get, 0
	if next.Head {
		method, c.request = http.MethodHead, &s.head
	}
	if s.logged && next.Status >= 400 && next.Status <= 499 {
		c.logged = next.Status
	}
	c.memory = append(append(c.memory[:0], method...), ' ')
	c.memory = append(append(c.memory, next.Target...), s.rest...)
	c.message = c.memory
}

// Replayed returns the file whose requests are sent, or nil if there is none.
func (t *Target) Replayed() *replay.File {
	if t.sequel == nil {
		return nil
	}
	return t.sequel.file
}
