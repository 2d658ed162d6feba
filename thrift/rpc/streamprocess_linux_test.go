package rpc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// runMeasured is the whole life of a process of BenchmarkStreamProcesses: a server ("streams-serve ADDR"), a client
// ("streams-echo ADDR STREAMS MESSAGES"), or the same without a protocol ("bytes-serve ADDR", "bytes-echo ADDR
// MESSAGES"). It returns in other processes. It runs before package buf checks the use of memory, which costs time.
func runMeasured() {
	words := testkit.ChildWords()
	var err error
	switch {
	case len(words) == 2 && words[0] == "streams-serve":
		err = serveStreams(words[1])
	case len(words) == 4 && words[0] == "streams-echo":
		streams, _ := strconv.Atoi(words[2])
		messages, _ := strconv.Atoi(words[3])
		err = echoStreams(words[1], streams, messages)
	case len(words) == 2 && words[0] == "bytes-serve":
		err = serveBytes(words[1])
	case len(words) == 3 && words[0] == "bytes-echo":
		messages, _ := strconv.Atoi(words[2])
		err = echoBytes(words[1], messages)
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveStreams serves until its input ends.
func serveStreams(addr string) error {
	s, err := rpc.NewServer(rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	if err != nil {
		return err
	}
	if err := s.Listen("tcp", addr); err != nil {
		return err
	}
	fmt.Println("serving")
	_, _ = fmt.Scanln()
	return s.Shutdown(context.Background())
}

// echoStreams sends messages of 1 KB on some streams of one connection and receives their echoes, with one in flight on
// each, as the program of Kitex does.
func echoStreams(addr string, streams, messages int) error {
	all, err := rpc.NewStreamClient(rpc.StreamConfig{Addr: addr})
	if err != nil {
		return err
	}
	defer all.Close()
	ctx := context.Background()
	open := make([]*rpc.BidiStreamingClient[chat.Message, chat.Message], streams)
	for i := range open {
		if open[i], err = chat.NewChatStreamClient(all).Talk(ctx); err != nil {
			return err
		}
		defer open[i].Close()
	}
	text := strings.Repeat("x", 1000)
	run := func(messages int) error {
		var running sync.WaitGroup
		failures := make(chan error, streams)
		for i, s := range open {
			running.Go(func() {
				for n := i; n < messages; n += streams {
					err := s.Send(ctx, &chat.Message{Text: text})
					if err == nil {
						_, err = s.Recv(ctx)
					}
					if err != nil {
						failures <- err
						return
					}
				}
			})
		}
		running.Wait()
		close(failures)
		return <-failures
	}
	if err := run(20_000); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	err = run(messages)
	fmt.Println("done")
	_, _ = fmt.Scanln()
	return err
}

// serveBytes echoes the bytes of one connection.
func serveBytes(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	c, err := l.Accept()
	if err != nil {
		return err
	}
	b := make([]byte, 4<<10)
	for {
		n, err := c.Read(b)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := c.Write(b[:n]); err != nil {
			return err
		}
	}
}

// echoBytes sends as many bytes as a message of 1 KB has, and receives them.
func echoBytes(addr string, messages int) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	b := make([]byte, 1040)
	run := func(messages int) (err error) {
		for i := 0; i < messages && err == nil; i++ {
			if _, err = c.Write(b); err == nil {
				_, err = io.ReadFull(c, b)
			}
		}
		return err
	}
	if err := run(20_000); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	err = run(messages)
	fmt.Println("done")
	_, _ = fmt.Scanln()
	return err
}

// usage is what the threads of a process have used.
type usage struct{ nanoseconds, waits float64 }

// usageOf reads the usage of a process.
func usageOf(t testing.TB, pid int) (u usage) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, task := range tasks {
		schedule, err := os.ReadFile(filepath.Join(task, "schedstat"))
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile(filepath.Join(task, "status"))
		if err != nil {
			t.Fatal(err)
		}
		u.nanoseconds += numberAfter(string(schedule), "")
		u.waits += numberAfter(string(status), "\nvoluntary_ctxt_switches:")
	}
	return u
}

// numberAfter returns the number after a word.
func numberAfter(text, word string) float64 {
	_, rest, _ := strings.Cut(text, word)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseFloat(fields[0], 64)
	return n
}

// BenchmarkStreamProcesses is BenchmarkStreams with the client and the server in separate processes, and the same with
// Kitex if SLIPSTREAM_KITEX names its tool. "bytes" has connections of package net and no protocol. It reports the CPU
// time of both processes for each message and its echo, and how often their threads waited.
func BenchmarkStreamProcesses(b *testing.B) {
	var kitex string
	if os.Getenv("SLIPSTREAM_KITEX") != "" {
		kitex = kitexStreams(b)
	}
	b.Run("bytes", func(b *testing.B) {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(b)))
		server := testkit.StartChild(b, "bytes-serve "+addr)
		server.Expect("serving")
		compareProcesses(b, server, testkit.StartChild(b, fmt.Sprintf("bytes-echo %s %d", addr, b.N)))
	})
	for _, streams := range []int{1, 100} {
		b.Run(fmt.Sprintf("ours/%d", streams), func(b *testing.B) {
			addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(b)))
			server := testkit.StartChild(b, "streams-serve "+addr)
			server.Expect("serving")
			compareProcesses(b, server, testkit.StartChild(b, fmt.Sprintf("streams-echo %s %d %d", addr, streams, b.N)))
		})
		b.Run(fmt.Sprintf("kitex/%d", streams), func(b *testing.B) {
			if kitex == "" {
				b.Skip("SLIPSTREAM_KITEX does not name Kitex's tool")
			}
			port := strconv.Itoa(freePort(b))
			server := testkit.StartProgram(b, exec.CommandContext(b.Context(), kitex, "server", port))
			testkit.Eventually(b, patience, func() error {
				c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
				if err == nil {
					err = c.Close()
				}
				return err
			})
			compareProcesses(b, server, testkit.StartProgram(b, exec.CommandContext(b.Context(), kitex, "echo", port, strconv.Itoa(streams), strconv.Itoa(b.N))))
		})
	}
}

// compareProcesses lets the client send its messages, and reports what both processes have used meanwhile.
func compareProcesses(b *testing.B, server, client *testkit.Child) {
	client.Expect("ready")
	fromServer, fromClient := usageOf(b, server.PID()), usageOf(b, client.PID())
	b.ResetTimer()
	client.Poke()
	client.Expect("done")
	b.StopTimer()
	total := 0.0
	for name, u := range map[string][2]usage{"server": {fromServer, usageOf(b, server.PID())}, "client": {fromClient, usageOf(b, client.PID())}} {
		cpu := (u[1].nanoseconds - u[0].nanoseconds) / float64(b.N) / 1000
		total += cpu
		b.ReportMetric(cpu, name+"-us/op")
		b.ReportMetric((u[1].waits-u[0].waits)/float64(b.N), name+"-waits/op")
	}
	b.ReportMetric(total, "cpu-us/op")
}
