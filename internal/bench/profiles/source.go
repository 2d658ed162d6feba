package profiles

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/google/pprof/profile"
)

const (
	// defaultPath is the path of the handlers of net/http/pprof.
	defaultPath = "/debug/pprof/"
	// probeTimeout bounds the check whether there are profiles.
	probeTimeout = 5 * time.Second
	// maxProfile and maxTrace bound the size of a response, and maxUnpacked that of the
	// uncompressed profile.
	maxProfile  = 32 << 20
	maxTrace    = 128 << 20
	maxUnpacked = 64 << 20
	// maxRefusal bounds how much is shown of a response that is not a profile.
	maxRefusal = 200
)

// An Error reports why there are no profiles of a process.
type Error struct {
	Of  string // "process 12" or a URL without user and query
	Err error
}

// Error returns which profiles are missing, and why.
func (e *Error) Error() string { return "profiles of " + e.Of + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Source is a process that serves net/http/pprof.
type Source struct {
	// Immutable after Find.
	name   string
	base   *url.URL // ends with a slash
	client *http.Client
}

// Name returns the URL of the profiles, without user and query, or the process.
func (s *Source) Name() string { return s.name }

// Find returns the source that text names: a URL, to which the default path /debug/pprof/ is added
// if it has none, or the number of a process of this machine, whose listeners are tried. It fails
// if there are no profiles. control, if set, is the Control function of the [net.Dialer].
func Find(ctx context.Context, text string, control func(network, address string, c syscall.RawConn) error) (*Source, error) {
	dialer := &net.Dialer{Timeout: probeTimeout, Control: control}
	client := &http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, MaxIdleConns: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if pid, err := strconv.Atoi(text); err == nil {
		return findProcess(ctx, pid, client)
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	base, err := url.Parse(text)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, &Error{"the target", errors.New("expected a URL such as http://host:port, or the number of a process")}
	}
	if base.Path == "" || base.Path == "/" {
		base.Path = defaultPath
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	base.RawPath, base.RawQuery, base.Fragment = "", "", ""
	s := &Source{name: base.Scheme + "://" + base.Host + base.EscapedPath(), base: base, client: client}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// findProcess tries to get profiles from the listeners of a process.
func findProcess(ctx context.Context, pid int, client *http.Client) (*Source, error) {
	name := fmt.Sprintf("process %d", pid)
	addresses, err := listeners(pid)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = errors.New("there is no such process, or none that this user may see")
	case errors.Is(err, os.ErrPermission):
		err = errors.New("this user may not see on which addresses it listens; expected the URL of its profiles")
	case err == nil && len(addresses) == 0:
		err = errors.New("it listens on no TCP address; expected the URL of its profiles")
	}
	if err != nil {
		return nil, &Error{name, err}
	}
	var all []error
	for _, address := range addresses {
		s := &Source{name: name, client: client, base: &url.URL{Scheme: "http", Host: address, Path: defaultPath}}
		err := s.probe(ctx)
		if err == nil {
			return s, nil
		}
		var inner *Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		all = append(all, fmt.Errorf("%s: %w", address, err))
	}
	return nil, &Error{name, errors.Join(all...)}
}

// probe requests a small profile.
func (s *Source) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	data, err := s.get(ctx, "threadcreate", maxProfile)
	if err == nil {
		_, err = parse(data)
	}
	if err != nil {
		return &Error{s.name, err}
	}
	return nil
}

// get returns the response to a request for a profile, which may have at most most bytes.
func (s *Source) get(ctx context.Context, page string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "", nil)
	if err != nil {
		return nil, err
	}
	path, query, _ := strings.Cut(page, "?")
	req.URL = s.base.JoinPath(path)
	req.URL.RawQuery = query
	resp, err := s.client.Do(req)
	if err != nil {
		var shown *url.Error // contains the URL, which may contain a user
		if errors.As(err, &shown) {
			err = shown.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // if it arrives, it says more than the status
		return nil, refusal(resp.StatusCode, req.URL.Path, string(text))
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, fmt.Errorf("more than %d bytes", most)
	}
	return data, nil
}

// refusal returns the error for a response that is not a profile.
func refusal(status int, path, text string) error {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "<") {
		text = "" // an HTML page
	}
	answer := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	if text != "" {
		answer += " (" + Printable(text, maxRefusal) + ")"
	}
	if status == http.StatusNotFound {
		return fmt.Errorf("%s returned %s; expected the handlers of net/http/pprof there", path, answer)
	}
	return fmt.Errorf("%s returned %s", path, answer)
}

// errNoProfile is the cause for responses that are something else.
var errNoProfile = errors.New("the response is not a profile; expected the handlers of net/http/pprof there")

// parse parses a profile, which may be compressed.
func parse(data []byte) (*profile.Profile, error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%w (%w)", errNoProfile, err)
		}
		if data, err = io.ReadAll(io.LimitReader(z, maxUnpacked+1)); err != nil {
			return nil, fmt.Errorf("%w (%w)", errNoProfile, err)
		}
		if len(data) > maxUnpacked {
			return nil, fmt.Errorf("a profile of more than %d bytes", maxUnpacked)
		}
	}
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil && len(p.SampleType) == 0 { // some texts look like this
		err = errors.New("the profile counts nothing")
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", errNoProfile, Printable(err.Error(), maxRefusal))
	}
	return p, nil
}

// Printable returns a text of a target with non-printable characters escaped, cut off after most
// bytes.
func Printable(text string, most int) string {
	var b strings.Builder
	for _, c := range strings.ToValidUTF8(text, "\uFFFD") {
		if b.Len() >= most {
			b.WriteString("...")
			break
		}
		if unicode.IsPrint(c) {
			b.WriteRune(c)
			continue
		}
		quoted := strconv.QuoteRune(c)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
