package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/credentials"
	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// fullGoal is the maximum cost of a hit with all features enabled, relative to the server's CPU
	// time for the same request with all of them disabled.
	fullGoal = 1.25
	// clients is the number of credentials and of source addresses, which callers use in turn.
	clients = 64
	// webOrigin is the origin of the page that makes the requests.
	webOrigin = "https://app.example"
	// off is the subject with all features disabled.
	off = "off"
)

// A variant is a kind of request to a gateway with all features enabled.
type variant struct {
	name   string // appended to "memory-hit-full"
	token  bool   // whether to use a JWT instead of an API key
	coding string // that is requested and expected; "" for identity
}

var variants = []variant{
	{name: "", token: true, coding: "gzip"},
	{name: "-identity", token: true, coding: ""},
	{name: "-key", token: false, coding: "gzip"},
}

// full holds what the scenarios with all features enabled share.
type full struct {
	// Immutable after open.
	credentials *credentials.Set
	collector   *collector
	on, off     subject.Program
}

// fullScenarios compare ours with all features of the sections http, auth, tracing and log enabled
// with ours with all of them disabled, under the same requests.
func (h *harness) fullScenarios() (all []load.Scenario) {
	for _, v := range variants {
		for _, callers := range []int{64, 1024} {
			all = append(all, h.fullScenario(v, callers))
		}
	}
	return all
}

func (h *harness) fullScenario(v variant, callers int) load.Scenario {
	sc := load.Scenario{
		Name: fmt.Sprintf("memory-hit-full%s/%d", v.name, callers), Primary: load.ServerUS,
		Goals: []load.Goal{{Metric: load.ServerUS, Rival: off, Ratio: fullGoal}},
	}
	for _, name := range []string{load.Ours, load.Control, off} {
		sc.Subjects = append(sc.Subjects, load.Subject{Name: name, Run: func(ctx context.Context, round int) (load.Sample, error) {
			f, err := h.full(ctx)
			if err != nil {
				return load.Sample{}, err
			}
			hit := subject.Hit{Callers: callers, WarmUp: h.warmUp, Window: h.window, Seed: uint64(round)}
			hit.Ask = func(s *loadproc.Spec) { f.ask(v, s) }
			program := f.on
			hit.Prove = func(ctx context.Context, server *subject.Server) error { return f.proveOn(ctx, v, server.Address) }
			if name == off {
				program = f.off
				hit.Prove = func(ctx context.Context, server *subject.Server) error { return proveOff(ctx, server.Address) }
			}
			return hit.Run(ctx, program)
		}})
	}
	return sc
}

// full creates what the scenarios share on first use.
func (h *harness) full(ctx context.Context) (*full, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.everything != nil {
		return h.everything, nil
	}
	f := &full{}
	binary, err := h.slipstream(ctx)
	if err != nil {
		return nil, err
	}
	if f.credentials, err = credentials.New(clients); err != nil {
		return nil, err
	}
	bare, err := subject.NewSlipstream(ctx, binary, filepath.Join(h.scratch, "full"), depts.Count, "512MiB")
	if err != nil {
		return nil, err
	}
	if f.off, err = bare.With(subject.Extra{Sections: "log: { slow: 0s }\n"}); err != nil {
		return nil, err
	}
	if f.collector, err = newCollector(); err != nil {
		return nil, err
	}
	if f.on, err = bare.With(everything(f.credentials, f.collector.url)); err != nil {
		return nil, errors.Join(err, f.collector.Close())
	}
	h.everything = f
	return f, nil
}

// Close implements [command.Harness]: it ends what full has started.
func (h *harness) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.everything == nil {
		return nil
	}
	return h.everything.collector.Close()
}

// everything returns the configuration of a gateway with all features enabled. The limits are far
// above any load, so they are enforced but never refuse a request.
func everything(c *credentials.Set, collector string) subject.Extra {
	return subject.Extra{
		Access: fmt.Sprintf(`keys: ["*"], jwt: true, claims: { scope: [%q] }`, credentials.Scope),
		Sections: fmt.Sprintf(`http:
  compression: [zstd, gzip]
  trusted_proxies: [10.0.0.0/8]
  cors: { origins: [%q, "https://admin.example"], headers: [X-Custom], credentials: true, max_age: 10m }
  limits:
    client: { rate: 1000000 }
    caller: { rate: 1000000 }
auth:
  keys: keys.txt
  jwt: { keys: jwks.json, issuer: %q, audience: %q, algorithms: [RS256] }
tracing: { endpoint: %q, sample: 0 }
log: { slow: 1s }
`, webOrigin, credentials.Issuer, credentials.Audience, collector),
		Files: map[string]string{"keys.txt": c.Keys, "jwks.json": c.JWKS},
	}
}

// ask sets the requests of a variant, which are the same for every subject.
func (f *full) ask(v variant, s *loadproc.Spec) {
	s.Traced, s.Coding, s.Depts, s.Sources = true, v.coding, true, clients
	for i := range clients {
		var block strings.Builder
		for _, field := range f.fields(v, i) {
			fmt.Fprintf(&block, "%s: %s\r\n", field[0], field[1])
		}
		s.Fields = append(s.Fields, block.String())
	}
}

// fields returns the header fields of client i.
func (f *full) fields(v variant, i int) [][2]string {
	coding := v.coding
	if coding == "" {
		coding = "identity"
	}
	fields := [][2]string{{"Origin", webOrigin}, {"Accept-Encoding", coding}}
	if v.token {
		return append(fields, [2]string{"Authorization", "Bearer " + f.credentials.Tokens[i]})
	}
	return append(fields, [2]string{"X-API-Key", f.credentials.APIKeys[i]})
}

// proveOn returns an error unless everything to be measured is enabled: a gateway that admits every
// client would be cheap.
func (f *full) proveOn(ctx context.Context, v variant, address string) error {
	without, err := probe(ctx, address, [][2]string{{"Origin", webOrigin}})
	if err != nil {
		return err
	}
	if without.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("without credentials the answer is %s, want 401", without.Status)
	}
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	fields := append(f.fields(v, 1), [2]string{"Traceparent", "00-" + traceID + "-00f067aa0ba902b7-00"})
	with, err := probe(ctx, address, fields)
	if err != nil {
		return err
	}
	if with.StatusCode != http.StatusOK {
		return fmt.Errorf("with credentials the answer is %s, want 200", with.Status)
	}
	for name, holds := range map[string]string{
		"Access-Control-Allow-Origin": webOrigin, "Access-Control-Allow-Credentials": "true", "Vary": "Origin",
		"Traceresponse": traceID, "X-Request-Id": "", "Cache-Control": "private",
	} {
		if got := strings.Join(with.Header.Values(name), ", "); got == "" || !strings.Contains(got, holds) {
			return fmt.Errorf("field %s of an answer is %q, want one that contains %q", name, got, holds)
		}
	}
	if n := f.collector.posts.Load(); n > 0 {
		return fmt.Errorf("the collector got %d requests, want none: no request was sampled", n)
	}
	return nil
}

// proveOff returns an error unless everything is disabled.
func proveOff(ctx context.Context, address string) error {
	rsp, err := probe(ctx, address, [][2]string{{"Origin", webOrigin}})
	if err != nil {
		return err
	}
	if got := rsp.Header.Get("Access-Control-Allow-Origin"); rsp.StatusCode != http.StatusOK || got != "" {
		return fmt.Errorf("with everything off, the answer is %s with Access-Control-Allow-Origin %q, want 200 without it", rsp.Status, got)
	}
	return nil
}

// probe requests a document over a separate connection and drops its body.
func probe(ctx context.Context, address string, fields [][2]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/depts/1", address), nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	for _, field := range fields {
		req.Header.Set(field[0], field[1])
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer rsp.Body.Close()
	_, err = io.Copy(io.Discard, rsp.Body)
	return rsp, err
}
