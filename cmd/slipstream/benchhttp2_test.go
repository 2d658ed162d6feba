package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

// Each connection has as many callers as streams.
func TestBenchHTTP2(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}
	})
	secure, plain := httptest.NewUnstartedServer(handler), httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	plain.Config.Protocols = new(http.Protocols)
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	defer plain.Close()
	for _, args := range [][]string{
		{"--http2", "--http2-streams", "5", "--insecure", secure.URL},
		{"--http2-prior-knowledge", "--http2-streams", "5", plain.URL},
	} {
		expectBench(t, exitOK, " over HTTP/2, 5 streams on a connection\nclosed loop, 10 callers, ", "", slices.Concat([]string{"http", "-c", "2", "-n", "100"}, args)...)
	}
	for stderr, args := range map[string][]string{
		"expected https://, or prior knowledge": {"--http2", plain.URL}, "expected http://": {"--http2-prior-knowledge", secure.URL},
		"none of the others can be": {"--http2", "--http2-prior-knowledge", plain.URL}, "streams on a connection without HTTP/2": {"--http2-streams", "2", plain.URL},
		"expected HTTP/1.1": {"--http2", "--disable-keepalive", secure.URL},
	} {
		expectBench(t, exitUsage, "", stderr, append([]string{"http"}, args...)...)
	}
}
