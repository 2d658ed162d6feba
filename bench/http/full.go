package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/credentials"
	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/subject"
	"github.com/slipstream-go/slipstream/internal/load"
)

// clients is the number of API keys and of source addresses, which callers use in turn.
const clients = 64

// requestLog is the name of the file to which a line is written for each request.
const requestLog = "requests.jsonl"

// fullOf returns the name of the program of a subject in the scenario hit-full.
func fullOf(name string) string { return name + " full" }

// fullHit compares ours, with API keys, rate limits and a log of all requests enabled, with ours on
// the other engine and with ours without these features, under the same requests.
func (h *harness) fullHit(connections int) load.Scenario {
	names := []string{load.Ours, load.Control, onNetHTTP, off}
	return h.scenario(fmt.Sprintf("hit-full/%d", connections), load.ServerUS, nil, names, func(ctx context.Context, name string, round int) (load.Sample, error) {
		if name != off {
			name = fullOf(name)
		}
		p, err := h.program(ctx, name)
		if err != nil {
			return load.Sample{}, err
		}
		hit := subject.Hit{Callers: connections, WarmUp: h.warmUp, Window: h.window, Seed: uint64(round)}
		known, err := h.knownClients()
		if err != nil {
			return load.Sample{}, err
		}
		hit.Ask = func(s *loadproc.Spec) {
			s.Depts, s.Sources = true, clients
			for _, key := range known.APIKeys {
				s.Fields = append(s.Fields, "X-API-Key: "+key+"\r\n")
			}
		}
		if name == off {
			return hit.Run(ctx, p)
		}
		hit.Prove = func(ctx context.Context, server *subject.Server) error { return proveFull(ctx, server.Address) }
		sample, err := hit.Run(ctx, p)
		if err != nil {
			return sample, err
		}
		return sample, h.takeLog(name, sample)
	})
}

// knownClients creates the credentials on first use.
func (h *harness) knownClients() (*credentials.Set, error) {
	if h.credentials == nil {
		set, err := credentials.New(clients)
		if err != nil {
			return nil, err
		}
		h.credentials = set
	}
	return h.credentials, nil
}

// fullGateway is ours with all features of hit-full enabled. The limits are far above any load, so
// they are enforced but never refuse a request.
func (h *harness) fullGateway(ctx context.Context, name, engine string) (subject.Program, error) {
	known, err := h.knownClients()
	if err != nil {
		return nil, err
	}
	return h.gateway(ctx, fullDirectory(name), subject.Extra{
		Access: `keys: ["*"]`,
		Sections: fmt.Sprintf(`http:
  engine: %s
  limits:
    client: { rate: 1000000 }
    caller: { rate: 1000000 }
auth: { keys: keys.txt }
log: { slow: 1s, requests: %s }
`, engine, requestLog),
		Files: map[string]string{"keys.txt": known.Keys},
	})
}

// fullDirectory returns the working directory of the gateway of a subject.
func fullDirectory(name string) string { return name + "-full" }

// takeLog removes the log of a server that has ended, and returns an error if it does not contain
// the requests.
func (h *harness) takeLog(name string, sample load.Sample) error {
	name = strings.TrimSuffix(name, " full")
	if name == load.Control {
		name = load.Ours
	}
	path := filepath.Join(h.place.Scratch, "gateway-"+fullDirectory(name), requestLog)
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the log of requests: %w", err)
	}
	const shortest = 40 // bytes of a line
	if least := int64(sample.Values[load.RPS]*h.window.Seconds()) * shortest; info.Size() < least {
		return errors.Join(fmt.Errorf("the log of requests has %d bytes, want at least %d", info.Size(), least), os.Remove(path))
	}
	return os.Remove(path)
}

// proveFull checks that a gateway refuses clients without a key: one that admits
// every client would be cheap.
func proveFull(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/depts/1", address), nil)
	if err != nil {
		return err
	}
	req.Close = true
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := rsp.Body.Close(); err != nil {
		return err
	}
	if rsp.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("without a key the answer is %s, want 401", rsp.Status)
	}
	return nil
}
