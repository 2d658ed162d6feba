package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// tlsRivals are the third-party servers that have a subject with TLS.
var tlsRivals = []string{"net/http", "nginx"}

// handshakeSources is the number of loopback addresses for connections that are used for one
// request, each of which leaves a port in TIME_WAIT.
const handshakeSources = 8

// tlsSuffix is the suffix of the names of programs with TLS. Their subjects have no such suffix.
const tlsSuffix = " tls"

func tlsOf(name string) string { return name + tlsSuffix }

// tlsScenarios compare servers that speak TLS 1.3, AES-128-GCM, X25519 and a certificate
// with a key on P-256.
func (h *harness) tlsScenarios() []load.Scenario {
	fresh := func(resume bool) func(*loadproc.Spec) {
		return func(s *loadproc.Spec) { s.Fresh, s.Resume, s.Sources = true, resume, handshakeSources }
	}
	return []load.Scenario{
		h.tls("hit-tls/64", 64, tlsGoals(), nil),
		h.tls("hit-tls/1024", 1024, tlsGoals(), nil),
		h.tls("handshake/64", 64, nil, fresh(false)),
		h.tls("handshake-resumed/64", 64, nil, fresh(true)),
		// Frames and header fields cost the generator several times as much as HTTP/1.1.
		h.tls("hit-h2/64", 64, nil, func(s *loadproc.Spec) { s.HTTP2 = true }),
	}
}

// tlsGoals are the targets for a hit over TLS.
func tlsGoals() []load.Goal {
	return []load.Goal{{Metric: load.ServerUS, Rival: "nginx", Ratio: 1}}
}

// tls compares the servers with TLS, and with HTTP/1.1 also ours in clear text: the
// difference is the cost of TLS. ask may change the load.
func (h *harness) tls(name string, connections int, goals []load.Goal, ask func(*loadproc.Spec)) load.Scenario {
	var spec loadproc.Spec
	if ask != nil {
		ask(&spec)
	}
	names := []string{load.Ours, load.Control, onNetHTTP}
	if !spec.HTTP2 {
		names = append(names, clearText)
	}
	names = append(names, h.present(tlsRivals...)...)
	return h.scenario(name, load.ServerUS, goals, names, func(ctx context.Context, name string, round int) (load.Sample, error) {
		program := tlsOf(name)
		if name == clearText {
			program = load.Ours
		}
		return h.hitOnce(ctx, program, connections, round, ask, nil)
	})
}

// tlsGateway is ours with TLS.
func (h *harness) tlsGateway(ctx context.Context, name, engine string) (subject.Program, error) {
	certificate, err := h.certificate()
	if err != nil {
		return nil, err
	}
	return h.gateway(ctx, strings.ReplaceAll(tlsOf(name), " ", "-"), subject.Extra{
		TLS: certificate, Sections: fmt.Sprintf("http: { engine: %s }\n", engine),
	})
}

// tlsBuilds returns the builds of third-party programs with TLS.
func (h *harness) tlsBuilds() map[string]func(context.Context) (subject.Program, error) {
	return map[string]func(context.Context) (subject.Program, error){
		tlsOf("net/http"): func(ctx context.Context) (subject.Program, error) {
			certificate, err := h.certificate()
			if err != nil {
				return nil, err
			}
			r, err := subject.BuildRival(ctx, h.place.Module, h.place.Scratch, "gateway", "nethttp")
			if err != nil {
				return nil, err
			}
			return r.WithTLS(certificate), nil
		},
		tlsOf("nginx"): func(context.Context) (subject.Program, error) {
			certificate, err := h.certificate()
			if err != nil {
				return nil, err
			}
			n, err := subject.NewNginx(filepath.Join(h.place.Scratch, "nginx-tls"))
			if err != nil {
				return nil, err
			}
			return n.WithTLS(certificate), nil
		},
	}
}
