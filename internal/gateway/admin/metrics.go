package admin

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

const (
	// maxGathering is the maximum number of concurrent requests for the metrics.
	maxGathering = 4
	// gatherTimeout bounds each of them.
	gatherTimeout = 10 * time.Second
)

// metricsPage answers with the metrics of source, in the format of the exposition that the
// client prefers, and compressed if it accepts gzip. It replaces promhttp, which needs packages
// for handlers that are not used here.
func metricsPage(source prometheus.Gatherer) http.HandlerFunc {
	places := make(chan struct{}, maxGathering)
	page := func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			http.Error(w, fmt.Sprintf("Limit of concurrent requests reached (%d), try again later.", maxGathering), http.StatusServiceUnavailable)
			return
		}
		families, err := source.Gather()
		if err != nil {
			http.Error(w, "An error has occurred while serving metrics:\n\n"+err.Error(), http.StatusInternalServerError)
			return
		}
		format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
		w.Header().Add("Vary", "Accept")
		w.Header().Add("Vary", "Accept-Encoding")
		w.Header().Set("Content-Type", string(format))
		var out io.Writer = w
		if takesGzip(r.Header) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			defer packed.Close()
			out = packed
		}
		encoder := expfmt.NewEncoder(out, format)
		names := r.URL.Query()["name[]"] // of the metrics wanted; all if empty
		for _, family := range families {
			if len(names) > 0 && !slices.Contains(names, family.GetName()) {
				continue
			}
			if encoder.Encode(family) != nil {
				return // the client has left; it was answered 200
			}
		}
	}
	return http.TimeoutHandler(http.HandlerFunc(page), gatherTimeout, fmt.Sprintf("Exceeded configured timeout of %v.\n", gatherTimeout)).ServeHTTP
}

// takesGzip reports whether Accept-Encoding contains gzip or *, with a quality other than
// zero.
func takesGzip(h http.Header) bool {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, parameters, _ := strings.Cut(coding, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		_, quality, _ := strings.Cut(parameters, "=")
		if name == "gzip" || name == "*" {
			return strings.Trim(quality, " 0.") != "" || !strings.HasPrefix(strings.TrimSpace(quality), "0")
		}
	}
	return false
}
