// Package promtext reads pages in the text format of Prometheus.
package promtext

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// scrapeTimeout bounds the time of a request for a page.
	scrapeTimeout = 10 * time.Second
	// maxPage and maxLine bound how much of it is read.
	maxPage = 64 << 20
	maxLine = 1 << 20
)

var client = &http.Client{Timeout: scrapeTimeout}

// Scrape returns the samples of the page at a URL that have no labels, and for each name with
// labels the sum over them. Errors do not contain the user or the password of the URL.
func Scrape(ctx context.Context, url string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("promtext: %s answers %s", req.URL.Redacted(), resp.Status)
	}
	return Parse(io.LimitReader(resp.Body, maxPage))
}

// Parse parses a page; its results are those of Scrape.
func Parse(r io.Reader) (map[string]float64, error) {
	values := map[string]float64{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest := line, ""
		if brace := strings.IndexByte(line, '{'); brace >= 0 {
			closing := strings.LastIndexByte(line, '}')
			if closing < brace {
				return nil, fmt.Errorf("promtext: line %q, want a closing brace", line)
			}
			name, rest = line[:brace], line[closing+1:]
		} else if blank := strings.IndexByte(line, ' '); blank >= 0 {
			name, rest = line[:blank], line[blank:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return nil, fmt.Errorf("promtext: line %q, want a name and a number", line)
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("promtext: line %q: %w", line, err)
		}
		values[name] += v
	}
	return values, lines.Err()
}
