package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/credentials"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/httpfront"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
)

// The scenario steps/1 shows what each part of the HTTP surface adds to a hit. Requests
// of all subjects carry all fields, so that only their processing differs.
const stepsScenario = "steps/1"

// steps are the subjects of steps/1, with the parts that are enabled in each.
var steps = []struct {
	name  string
	parts []string
}{
	{"step-off", nil},
	{"step-slow", []string{"slow"}},
	{"step-gzip", []string{"gzip"}},
	{"step-cors", []string{"cors"}},
	{"step-tracing", []string{"tracing"}},
	{"step-jwt", []string{"jwt"}},
	{"step-key", []string{"key"}},
	{"step-limits", []string{"limits"}},
	{"step-jwt-limits", []string{"jwt", "limits"}},
	{"step-all", []string{"slow", "gzip", "cors", "tracing", "jwt", "limits"}},
}

const webOrigin = "https://app.example"

// unsampled traces only requests that the client traces, like a gateway with sample: 0.
type unsampled struct{}

func (unsampled) Sample(ctx trace.Context, sent bool) bool { return sent && ctx.Sampled() }
func (unsampled) Request(trace.Span)                       {}

// openStep returns the handler of one of the steps.
func openStep(name string) (handler http.Handler, fields []string, end func() error, err error) {
	for _, s := range steps {
		if s.name == name {
			return openParts(s.parts)
		}
	}
	return nil, nil, nil, fmt.Errorf("no subject %q", name)
}

func openParts(parts []string) (handler http.Handler, fields []string, end func() error, err error) {
	has := func(part string) bool { return slices.Contains(parts, part) }
	set, err := credentials.New(64)
	if err != nil {
		return nil, nil, nil, err
	}
	gate, err := openGate(set)
	if err != nil {
		return nil, nil, nil, err
	}
	config := httpfront.ServiceConfig{RequestConfig: frontend.RequestConfig{SlowerThan: -1}}
	var rule *access.Rule
	if has("slow") {
		config.SlowerThan = time.Second
	}
	if has("gzip") {
		config.Compression = compression
	}
	if has("cors") {
		config.CORS = httpfront.CORS{Origins: []string{webOrigin, "https://admin.example"}, Credentials: true}
	}
	if has("tracing") {
		config.Spans = unsampled{}
	}
	if has("jwt") || has("key") {
		config.Gate = gate
		rule = &access.Rule{Keys: []string{"*"}, JWT: true, Claims: map[string][]string{"scope": {credentials.Scope}}}
	}
	if has("limits") {
		config.ClientLimit = limit.New(limit.Config{Rate: 1e6})
		config.CallerLimit = limit.New(limit.Config{Rate: 1e6})
	}
	o, err := newOurs(config, rule)
	if err != nil {
		gate.Close()
		return nil, nil, nil, err
	}
	for i, token := range set.Tokens {
		block := "Origin: " + webOrigin + "\r\nAccept-Encoding: gzip\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n"
		if has("key") {
			block += "X-API-Key: " + set.APIKeys[i] + "\r\n"
		} else {
			block += "Authorization: Bearer " + token + "\r\n"
		}
		fields = append(fields, block)
	}
	return o.handler, fields, func() error {
		gate.Close()
		return o.cache.Close()
	}, nil
}

// openGate reads the credentials as a gateway does, from files.
func openGate(set *credentials.Set) (gate *access.Gate, err error) {
	dir, err := os.MkdirTemp("", "slipstream-handler-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	keys, jwks := filepath.Join(dir, "keys.txt"), filepath.Join(dir, "jwks.json")
	if err := errors.Join(os.WriteFile(keys, []byte(set.Keys), 0o600), os.WriteFile(jwks, []byte(set.JWKS), 0o600)); err != nil {
		return nil, err
	}
	// Never read again, because the files have been removed.
	return access.Open(access.Config{KeysFile: keys, JWKSFile: jwks, Issuer: credentials.Issuer, Audience: credentials.Audience,
		Algorithms: []string{"RS256"}, Reload: -1})
}

// expected returns the content coding of the answers to the fields of a subject.
func expected(subject string) string {
	for _, s := range steps {
		if s.name == subject && slices.Contains(s.parts, "gzip") {
			return "gzip"
		}
	}
	return ""
}

// isStep reports whether a subject belongs to steps/1.
func isStep(subject string) bool { return strings.HasPrefix(subject, "step-") }
