package httpload

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slipstream-go/slipstream/internal/bench/mix"
)

// A request is a request that is sent repeatedly.
type request struct {
	bytes      []byte    // complete
	template   *template // nil if it has no placeholders for keys
	bodyless   bool      // whether the method is HEAD
	repeatable bool      // whether it may be executed twice (RFC 9110, section 9.2.2)
	right      statuses

	// The same for HTTP/2; nil if HTTP/2 is not used.
	http2 *http.Request
	body  []byte
}

// newRequest returns the request that the options describe, and its name.
func (o *Options) newRequest(u *url.URL) (r request, name string, err error) {
	method := cmp.Or(o.Method, http.MethodGet)
	if !isToken(method) || method == http.MethodConnect {
		return r, "", fmt.Errorf("method %q; expected one such as GET or POST", method)
	}
	r.bodyless = method == http.MethodHead
	r.repeatable = slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"}, method)
	name = method + " " + u.Scheme + "://" + u.Host + u.EscapedPath()
	if u.RawQuery != "" {
		name += "?…"
	}
	if r.right, err = parseStatuses(o.Statuses); err != nil {
		return r, "", err
	}
	head, hasLength, err := o.head(u, method)
	if err != nil {
		return r, "", err
	}
	r.template = newTemplate(head, o.Body, hasLength)
	r.bytes = append(endHead(head, hasLength, len(o.Body)), o.Body...)
	return r, name, nil
}

// mix builds the requests of a mix.
func (t *Target) mix(o *Options, u *url.URL) error {
	operations := slices.Clone(o.Mix)
	for i := range operations {
		one := &operations[i]
		at, err := pathOf(u, one.Path)
		if err != nil {
			return one.Wrong(err)
		}
		of := *o
		of.Method, of.Body, of.Statuses = cmp.Or(one.Method, o.Method), []byte(one.Body), cmp.Or(one.Status, o.Statuses)
		of.Fields = slices.Concat(o.Fields, one.Header)
		r, _, err := of.newRequest(at)
		if err != nil {
			return one.Wrong(err)
		}
		one.Name = cmp.Or(one.Name, cmp.Or(of.Method, http.MethodGet)+" "+cmp.Or(at.EscapedPath(), "/"))
		t.requests = append(t.requests, r)
	}
	t.name = mix.Describe(operations) + " at " + u.Scheme + "://" + u.Host
	t.weights, t.recorder = mix.WeightsOf(operations), mix.NewRecorder(operations)
	t.chooses = true
	return nil
}

// pathOf returns a URL with another path and query. If path is empty, the path of the URL is kept.
func pathOf(u *url.URL, path string) (*url.URL, error) {
	if path == "" {
		return u, nil
	}
	parsed, err := url.ParseRequestURI(path)
	if err != nil || !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("path %q; expected one such as /orders?open=1", path)
	}
	at := *u
	at.Path, at.RawPath, at.RawQuery = parsed.Path, parsed.RawPath, parsed.RawQuery
	return &at, nil
}

// head returns the head of a request up to the length of the body, and whether the length is
// required.
func (o *Options) head(u *url.URL, method string) (head []byte, hasLength bool, err error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, u.RequestURI())
	host := u.Host
	var rest strings.Builder
	authorized := false
	for _, line := range o.Fields {
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, false, fmt.Errorf("header %q; expected one such as \"Accept: text/html\"", name)
		}
		switch strings.ToLower(name) {
		case "host":
			host = value
			continue
		case "content-length", "transfer-encoding", "connection":
			return nil, false, fmt.Errorf("header %s is written by the generator", name)
		case "authorization":
			authorized = true
		}
		rest.WriteString(name + ": " + value + "\r\n")
	}
	b.WriteString("Host: " + host + "\r\n")
	user := o.User
	if password, ok := u.User.Password(); user == "" && ok {
		user = u.User.Username() + ":" + password
	}
	switch {
	case user != "" && authorized:
		return nil, false, errors.New("both a user and a header Authorization; expected only one of them")
	case user != "" && !strings.Contains(user, ":"):
		return nil, false, errors.New("a user without a password; expected user:password")
	case user != "":
		b.WriteString("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user)) + "\r\n")
	}
	b.WriteString(rest.String())
	if o.Fresh {
		b.WriteString("Connection: close\r\n")
	}
	hasLength = len(o.Body) > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
	return b.Bytes(), hasLength, nil
}

// statuses is the set of statuses of right responses; status 100+i is bit i%64 of word i/64.
type statuses [8]uint64

func (s *statuses) has(status int) bool {
	i := status - 100
	return i >= 0 && i < 64*len(s) && s[i/64]&(1<<(i%64)) != 0
}

func (s *statuses) add(from, to int) {
	for i := from - 100; i <= to-100; i++ {
		s[i/64] |= 1 << (i % 64)
	}
}

func parseStatuses(text string) (s statuses, err error) {
	if text == "" {
		s.add(200, 399)
		return s, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		class, isClass := strings.CutSuffix(strings.ToLower(word), "xx")
		n, err := strconv.Atoi(class)
		switch {
		case err == nil && isClass && n >= 2 && n <= 5:
			s.add(100*n, 100*n+99)
		case err == nil && !isClass && n >= 200 && n <= 599:
			s.add(n, n)
		default:
			return s, fmt.Errorf("status %q; expected one such as 404, or 2xx", word)
		}
	}
	return s, nil
}

// isToken reports whether text is a token (RFC 9110, section 5.6.2).
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
