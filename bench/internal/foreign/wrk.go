package foreign

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseWrk parses the output of wrk with --latency.
func ParseWrk(output string) (r Run, err error) {
	told := false
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && (fields[0] == "50%" || fields[0] == "99%"):
			d, err := time.ParseDuration(fields[1])
			if err != nil {
				return r, fmt.Errorf("latency %q: %w", fields[1], err)
			}
			if fields[0] == "50%" {
				r.P50 = d
			} else {
				r.P99 = d
			}
		case len(fields) >= 4 && fields[1] == "requests" && fields[2] == "in":
			if r.Completed, err = strconv.ParseUint(fields[0], 10, 64); err != nil {
				return r, fmt.Errorf("line %q: %w", line, err)
			}
			if r.Elapsed, err = time.ParseDuration(strings.TrimSuffix(fields[3], ",")); err != nil {
				return r, fmt.Errorf("line %q: %w", line, err)
			}
			told = true
		case strings.HasPrefix(strings.TrimSpace(line), "Socket errors:"), strings.HasPrefix(strings.TrimSpace(line), "Non-2xx"):
			n, err := sum(line)
			if err != nil {
				return r, err
			}
			r.Errors += n
			if r.Problem == "" && n > 0 {
				r.Problem = strings.TrimSpace(line)
			}
		}
	}
	if !told {
		return r, fmt.Errorf("no line of requests in %.200q", output)
	}
	return r, nil
}

// sum adds up the numbers after the colon in a line of errors, each with or without a word in front
// of it.
func sum(line string) (total uint64, err error) {
	_, rest, _ := strings.Cut(line, ": ")
	found := false
	for part := range strings.SplitSeq(rest, ",") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		n, err := strconv.ParseUint(words[len(words)-1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("line %q: %w", strings.TrimSpace(line), err)
		}
		total, found = total+n, true
	}
	if !found {
		return 0, fmt.Errorf("line %q, want a number", strings.TrimSpace(line))
	}
	return total, nil
}

// WrkScript requests keys in random order; the requests are built in advance.
func WrkScript(path string, keys int) string {
	return fmt.Sprintf(`local requests = {}
function init(args)
  math.randomseed(tonumber(args[1]) or 1)
  for n = 1, %d do requests[n] = wrk.format("GET", "%s" .. n) end
end
function request() return requests[math.random(%d)] end
`, keys, path, keys)
}
