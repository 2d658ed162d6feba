package admin

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/audit"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
)

// door decides who may do what. It is immutable, except for its limiter.
type door struct {
	token func(token string) (name string, ok bool) // nil if there is none
	line  func() int                                // nil if unknown
	wrong *limit.Limiter                            // wrong tokens by address
	begun time.Time
}

// The number of wrong tokens from an address after which its tokens are not checked for a time.
// A token has 256 random bits: the limit protects the log and tokens that people chose.
const (
	wrongRate  = 0.2 // per second
	wrongBurst = 10
)

func newDoor(config Config) *door {
	return &door{token: config.Token, line: config.Line, begun: time.Now(),
		wrong: limit.New(limit.Config{Rate: wrongRate, Burst: wrongBurst, MaxEntries: 1 << 12})}
}

// Rules by which a request is admitted, as named in the audit log; there are also "token:"
// and "certificate:" with a name.
const (
	ruleUnix     = "unix"
	ruleLoopback = "loopback"
	ruleToken    = "token"
	ruleOpen     = "open" // the page is open to anyone
	ruleNone     = "none" // nothing was presented
)

// refusal is why a request is refused.
type refusal struct {
	status int
	detail string
	rule   string // the rule that refused it
	wait   time.Duration
}

// enter returns the rule by which a request is admitted.
func (d *door) enter(r *http.Request) (rule string, no *refusal) {
	if name := certificateOf(r.TLS); name != "" {
		return "certificate:" + name, nil
	}
	if rule = local(r); rule != "" {
		return rule, nil
	}
	if everybodys(r.URL.Path) {
		return ruleOpen, nil
	}
	presented, ok := bearer(r)
	if !ok {
		return "", &refusal{status: http.StatusUnauthorized, rule: ruleNone, detail: "this page needs a token, unless the request comes from this machine; " + d.remedy()}
	}
	client, now := limit.ClientKey(addressOf(r)), time.Since(d.begun)
	if wait, ok := d.wrong.Within(client, now); !ok {
		return "", &refusal{status: http.StatusTooManyRequests, rule: ruleToken, detail: "too many wrong tokens from this address", wait: wait}
	}
	if d.token != nil {
		if name, ok := d.token(presented); ok {
			return strings.TrimSuffix(ruleToken+":"+name, ":"), nil
		}
	}
	d.wrong.Charge(client, now, 1)
	return "", &refusal{status: http.StatusUnauthorized, rule: ruleToken, detail: "the token is not known; " + d.remedy()}
}

// remedy says what to change, and where.
func (d *door) remedy() string {
	place := "admin"
	if d.line != nil {
		if n := d.line(); n > 0 {
			place = fmt.Sprintf("line %d: admin", n)
		}
	}
	return "expected Authorization: Bearer and a token from the file in the configuration (" + place + ": add token: FILE if there is none), or a certificate of a client (tls: { clients: FILE })"
}

// everybodys reports whether anyone may read a page.
func everybodys(path string) bool { return path == "/metrics" || path == "/live" || path == "/ready" }

// local returns the rule for a caller on this machine, or "" for one on another machine or with an
// unknown address.
func local(r *http.Request) string {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil {
		return ""
	}
	if at.Network() == "unix" {
		return ruleUnix
	}
	// Both ends are checked: a wrong setting of the kernel or of a proxy below TCP could deliver
	// packets from elsewhere to a loopback address.
	here, err := netip.ParseAddrPort(at.String())
	if err == nil && here.Addr().Unmap().IsLoopback() && addressOf(r).IsLoopback() {
		return ruleLoopback
	}
	return ""
}

// addressOf returns the address of the client, or the zero value if unknown.
func addressOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap()
}

// bearer returns the token of a request; ok is false if it has none.
func bearer(r *http.Request) (token string, ok bool) {
	all := r.Header.Values("Authorization")
	if len(all) == 0 {
		return "", false
	}
	scheme, token, _ := strings.Cut(all[0], " ")
	if len(all) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", true // something was presented, and it is wrong
	}
	return strings.TrimLeft(token, " "), true
}

// certificateOf returns the name in the verified certificate of the client, or "" if there is none.
func certificateOf(state *tls.ConnectionState) string {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return ""
	}
	c := state.PeerCertificates[0]
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	case len(c.EmailAddresses) > 0:
		return c.EmailAddresses[0]
	case len(c.IPAddresses) > 0:
		return c.IPAddresses[0].String()
	case c.Subject.String() != "":
		return c.Subject.String()
	}
	return "serial " + c.SerialNumber.String()
}

// turnAway answers a refused request.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, no *refusal) {
	s.record(r, audit.Event{Event: audit.LoginFailed, Rule: no.rule, Outcome: audit.Refused, Detail: r.Method + " " + short(r.URL.Path)})
	switch no.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="slipstream admin"`)
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", strconv.Itoa(int(max(1, math.Ceil(no.wait.Seconds())))))
	}
	refuse(w, no.status, no.detail)
}

// maxShort bounds text of a request in the audit log.
const maxShort = 200

func short(text string) string {
	if len(text) > maxShort {
		return strings.ToValidUTF8(text[:maxShort], "") + "..."
	}
	return text
}

// ruleKey is the key of the rule in the context of a request.
type ruleKey struct{}

func withRule(r *http.Request, rule string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), ruleKey{}, rule))
}

// record writes to the audit log what a request has done.
func (s *Server) record(r *http.Request, e audit.Event) {
	e.Listener, e.Peer = "admin", r.RemoteAddr
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && at.Network() == "unix" {
		e.Peer = "unix:" + at.String()
	}
	if e.Rule == "" {
		e.Rule, _ = r.Context().Value(ruleKey{}).(string)
	}
	s.audit(e)
}

// crowd bounds the connections of other machines to one server.
type crowd struct {
	mu sync.Mutex
	// Guarded by mu.
	remote map[net.Conn]struct{}
}

// changed is called by a server when the state of a connection changes.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if peer, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err != nil || peer.Addr().Unmap().IsLoopback() {
			return
		}
		c.mu.Lock()
		full := len(c.remote) >= maxRemote
		if !full {
			if c.remote == nil {
				c.remote = make(map[net.Conn]struct{})
			}
			c.remote[conn] = struct{}{}
		}
		c.mu.Unlock()
		if full {
			_ = conn.Close() // nothing was read
		}
	case http.StateClosed, http.StateHijacked:
		c.mu.Lock()
		delete(c.remote, conn)
		c.mu.Unlock()
	}
}

// complaints receives the log of net/http, one line per call.
type complaints struct{ server *Server }

// Write implements [io.Writer]. A handshake that fails because of a certificate is a failed login;
// others come from scanners, and would fill the log.
func (c complaints) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	handshake, ok := strings.CutPrefix(text, "http: TLS handshake error from ")
	switch {
	case !ok:
		c.server.log.Error("the admin listener: " + text)
	case strings.Contains(handshake, "certificate"):
		peer, why, _ := strings.Cut(handshake, ": ")
		c.server.audit(audit.Event{Event: audit.LoginFailed, Listener: "admin", Peer: short(peer), Rule: "certificate", Outcome: audit.Refused, Detail: short(why)})
	}
	return len(line), nil
}
