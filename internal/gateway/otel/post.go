package otel

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const contentType = "application/x-protobuf"

// poster sends encoded batches, one after the other.
type poster struct {
	// Immutable.
	url    string
	header http.Header
	client *http.Client
	timing timing
	gzip   bool
}

// newPoster returns a poster with headers and compression of the environment.
func newPoster(address string, cfg Config, t timing) *poster {
	p := &poster{
		url: address, header: headers(cfg.Log), timing: t, gzip: variable("COMPRESSION") == "gzip",
		client: &http.Client{
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, MaxConnsPerHost: 1, IdleConnTimeout: time.Minute},
			Timeout:   t.attempt,
			// A collector that redirects is misconfigured: spans only go to the configured URL.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if p.header.Get("User-Agent") == "" {
		p.header.Set("User-Agent", "Slipstream-OTLP-Exporter")
	}
	p.header.Set("Content-Type", contentType)
	if p.gzip {
		p.header.Set("Content-Encoding", "gzip")
	}
	return p
}

func (p *poster) close() { p.client.CloseIdleConnections() }

// again is an error after which the same batch may be sent again.
type again struct {
	error
	after time.Duration // as requested by the collector, or 0
}

func (a again) Unwrap() error { return a.error }

// post delivers a batch: it retries while the collector cannot be reached or is
// temporarily unable to accept it, for at most timing.give.
func (p *poster) post(ctx context.Context, body []byte) error {
	if p.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	began, pause := time.Now(), p.timing.first
	for {
		err := p.attempt(ctx, body)
		var retry again
		if !errors.As(err, &retry) {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		// This keeps gateways from all retrying together after an outage of the
		// collector.
		wait := max(retry.after, pause/2+rand.N(pause))
		if time.Since(began)+wait > p.timing.give {
			return fmt.Errorf("gave up after %v: %w", time.Since(began).Round(time.Millisecond), err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
		pause = min(2*pause, p.timing.pause)
	}
}

// attempt sends a batch once.
func (p *poster) attempt(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = p.header.Clone()
	response, err := p.client.Do(request)
	if err != nil {
		return again{error: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err == nil && len(text) > maxResponse {
		err = fmt.Errorf("response body too large: more than %d bytes", maxResponse)
	}
	switch status := response.StatusCode; {
	case status/100 == 2:
		if err != nil {
			return err
		}
		return accepted(response, text)
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway,
		status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return again{refusal(p.url, response, text), retryAfter(response.Header.Get("Retry-After"))}
	}
	return refusal(p.url, response, text)
}

// accepted returns what the collector rejected in a batch that it accepted.
func accepted(response *http.Response, text []byte) error {
	if response.Header.Get("Content-Type") != contentType {
		return nil
	}
	spans, message, err := readRejected(text)
	if err != nil {
		return err
	}
	if spans == 0 && message == "" {
		return nil
	}
	return fmt.Errorf("partial success: %s (%d spans rejected)", message, spans)
}

func refusal(url string, response *http.Response, text []byte) error {
	body := strings.TrimSpace(string(text))
	if body == "" {
		body = "(empty)"
	}
	return fmt.Errorf("failed to send to %s: %s (body: %s)", url, response.Status, body)
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(value string) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(time.Until(date), 0)
	}
	return 0
}
