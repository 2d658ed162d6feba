package redisserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Statistics holds sums of the counters of servers.
type Statistics struct {
	Reads    float64 `json:"reads"` // system calls that read from a client
	Commands float64 `json:"commands"`
	Topology float64 `json:"topology"` // commands that query the nodes and slots of a cluster
	Moved    float64 `json:"moved"`    // redirections
}

// fields lists the fields of Statistics, with the names of their counters.
var fields = []struct {
	counter string
	in      func(*Statistics) *float64
}{
	{"server_reads", func(s *Statistics) *float64 { return &s.Reads }},
	{"server_commands", func(s *Statistics) *float64 { return &s.Commands }},
	{"server_topology", func(s *Statistics) *float64 { return &s.Topology }},
	{"server_moved", func(s *Statistics) *float64 { return &s.Moved }},
}

// Counters returns the counters of the servers at addresses, without the contribution of reading
// them.
func Counters(addresses []string) []load.Counter {
	var now Statistics // of this reading, which the first counter makes
	var readings float64
	var counters []load.Counter
	for i, f := range fields {
		counters = append(counters, load.Counter{Name: f.counter, Read: func(ctx context.Context) (float64, error) {
			if i == 0 {
				now = Statistics{}
				for _, address := range addresses {
					one, err := ReadStatistics(ctx, address)
					if err != nil {
						return 0, err
					}
					now.add(one)
				}
				// Each reading sends one command to each server, which is counted after its reply,
				// and causes two reads: that of the command, and that of the end of the connection.
				now.Reads -= (2*readings + 1) * float64(len(addresses))
				now.Commands -= readings * float64(len(addresses))
				readings++
			}
			return *f.in(&now), nil
		}})
	}
	return counters
}

// StatisticsOf returns the values of the counters of [Counters]. It returns false if there are
// none.
func StatisticsOf(counters map[string]float64) (Statistics, bool) {
	var s Statistics
	for _, f := range fields {
		v, ok := counters[f.counter]
		if !ok {
			return s, false
		}
		*f.in(&s) = v
	}
	return s, true
}

func (s *Statistics) add(t Statistics) {
	for _, f := range fields {
		*f.in(s) += *f.in(&t)
	}
}

// ReadStatistics returns the statistics of one server since its start, over a separate connection.
func ReadStatistics(ctx context.Context, address string) (Statistics, error) {
	conn, err := (&net.Dialer{Timeout: startLimit}).DialContext(ctx, "tcp", address)
	if err != nil {
		return Statistics{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(startLimit)); err != nil {
		return Statistics{}, err
	}
	if _, err := io.WriteString(conn, EncodeCommand([]string{"INFO", "all"})); err != nil {
		return Statistics{}, err
	}
	reader := bufio.NewReader(conn)
	head, err := readLine(reader)
	if err != nil {
		return Statistics{}, err
	}
	n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if err != nil || n < 0 {
		return Statistics{}, fmt.Errorf("%s replied to INFO with %q", address, head)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(reader, text); err != nil {
		return Statistics{}, err
	}
	s, err := parseStatistics(string(text))
	if err != nil {
		return s, fmt.Errorf("INFO of %s: %w", address, err)
	}
	return s, nil
}

// parseStatistics parses the reply to INFO.
func parseStatistics(text string) (s Statistics, err error) {
	found := 0
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		var to *float64
		switch {
		case name == "total_reads_processed":
			to = &s.Reads
			found++
		case name == "total_commands_processed":
			to = &s.Commands
			found++
		case name == "errorstat_MOVED":
			to, value = &s.Moved, strings.TrimPrefix(value, "count=")
		case strings.HasPrefix(name, "cmdstat_cluster|"):
			to = &s.Topology
			value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		default:
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return s, fmt.Errorf("line %q: %w", line, err)
		}
		*to += v
	}
	if found != 2 {
		return s, fmt.Errorf("it contains only %d of total_reads_processed and total_commands_processed", found)
	}
	return s, nil
}
