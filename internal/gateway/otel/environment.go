package otel

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
)

// variable returns the environment variable of OTLP exporters with that name: the
// one for traces, or else the one for all signals.
func variable(name string) string {
	for _, prefix := range [...]string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if v := strings.TrimSpace(os.Getenv(prefix + name)); v != "" {
			return v
		}
	}
	return ""
}

// headers returns what the environment adds to every request: a list of name=value,
// the values with percent-encoding. Malformed elements are logged and skipped. Values
// are not logged, because they are usually credentials.
func headers(log *slog.Logger) http.Header {
	header := make(http.Header)
	list := variable("HEADERS")
	if list == "" {
		return header
	}
	for i, pair := range strings.Split(list, ",") {
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(value)
		if !found || err != nil || !isToken(name) {
			log.Warn("a header for the collector was ignored: expected name=value", "variable", "OTEL_EXPORTER_OTLP_HEADERS", "position", i+1)
			continue
		}
		header.Set(name, strings.TrimSpace(value))
	}
	return header
}

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// resource returns the attributes of the gateway: those of the environment, which
// can add, but not rename the service, and those of the exporter.
func resource(service string) ([]attribute, error) {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	ours := []attribute{
		{"service.name", service},
		{"telemetry.sdk.language", "go"},
		{"telemetry.sdk.name", "slipstream"},
		{"telemetry.sdk.version", version},
	}
	list := strings.TrimSpace(os.Getenv("OTEL_RESOURCE_ATTRIBUTES"))
	if list == "" {
		return ours, nil
	}
	values := make(map[string]string)
	order := make([]string, 0, len(ours))
	set := func(key, value string) {
		if _, known := values[key]; !known {
			order = append(order, key)
		}
		values[key] = value
	}
	for _, pair := range strings.Split(list, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %q without a value", pair)
		}
		value = strings.TrimSpace(value)
		if decoded, err := url.PathUnescape(value); err == nil {
			value = decoded
		}
		if key = strings.TrimSpace(key); key != "" {
			set(key, value)
		}
	}
	for _, a := range ours {
		set(a.key, a.value)
	}
	all := make([]attribute, len(order))
	for i, key := range order {
		all[i] = attribute{key, values[key]}
	}
	return all, nil
}
