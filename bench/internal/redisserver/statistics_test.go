package redisserver

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Events between two readings are counted exactly, excluding the readings themselves: 7 commands in
// 3 reads.
func TestCountersLeaveTheirOwnReadingsOut(t *testing.T) {
	s, err := Start(t.Context(), t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	counters := Counters([]string{s.Address})
	before := read(t, counters)
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for _, n := range []int{1, 2, 4} {
		if _, err := io.WriteString(conn, strings.Repeat(pingRequest, n)); err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := reader.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 {
		after := read(t, counters)
		growth := map[string]float64{}
		for name, v := range after {
			growth[name] = v - before[name]
		}
		got, ok := StatisticsOf(growth)
		if want := (Statistics{Reads: 3, Commands: 7}); !ok || got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// read reads counters as the generator does: in their order.
func read(t *testing.T, counters []load.Counter) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, c := range counters {
		v, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		values[c.Name] = v
	}
	return values
}

func TestParseStatistics(t *testing.T) {
	const text = "# Stats\r\ntotal_commands_processed:12\r\ntotal_reads_processed:5\r\n# Commandstats\r\n" +
		"cmdstat_get:calls=3,usec=1\r\ncmdstat_cluster|shards:calls=4,usec=9\r\ncmdstat_cluster|slots:calls=2,usec=9\r\n# Errorstats\r\nerrorstat_MOVED:count=6\r\n"
	got, err := parseStatistics(text)
	if want := (Statistics{Reads: 5, Commands: 12, Topology: 6, Moved: 6}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "total_reads_processed:5\r\n", "total_reads_processed:x\r\ntotal_commands_processed:1\r\n"} {
		if _, err := parseStatistics(bad); err == nil {
			t.Errorf("%q has statistics", bad)
		}
	}
	if _, ok := StatisticsOf(map[string]float64{fields[0].counter: 1}); ok {
		t.Error("a single counter was accepted as all statistics")
	}
}
