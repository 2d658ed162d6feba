package httpfront

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// hostileChild makes this process the hostile clients of another one: "address count".
const hostileChild = "SLIPSTREAM_HOSTILE_CHILD"

// dialFrom connects from an address of the loopback network with a small receive buffer.
func dialFrom(ip, to string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: patience, Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) {
			failure = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
		return errors.Join(err, failure)
	}}
	return d.Dial("tcp", to)
}

// pipeline is what each hostile and each slow client asks for.
func pipeline() string { return strings.Repeat(requestText("GET", "/depts/1500"), pipelined) }

const pipelined = 250

// smallListeners listens with sockets that send little ahead, so that the kernel does not
// hold what the server is to bound.
func smallListeners(t *testing.T) []net.Listener {
	t.Helper()
	all, err := loop.Listen("tcp", "127.0.0.1:0", runtime.GOMAXPROCS(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		raw, err := l.(*net.TCPListener).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var failure error
		err = raw.Control(func(fd uintptr) {
			failure = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, 16<<10)
		})
		if err = errors.Join(err, failure); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// beHostile asks on many connections and reads nothing, until its input ends.
func beHostile(t *testing.T, what string) {
	address, count, _ := strings.Cut(what, " ")
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(pipeline())
	for range n {
		c, err := dialFrom("127.0.0.66", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() { // ends when the server closes the connection, or with the process
			_, _ = c.Write(text)
		}()
	}
	fmt.Println("hostile")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startHostile runs that many hostile clients in another process until the test ends, so that
// the memory and the descriptors of this one are the server's.
func startHostile(t *testing.T, s *Server, n int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestUnreadAnswersAreBounded$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", hostileChild, s.Addr(), n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it may have been closed by the server before
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "hostile\n" {
		t.Fatalf("the hostile clients say %q, %v", line, err)
	}
}

// TestUnreadAnswersAreBounded: 2,000 connections that pipeline small documents and read none
// of them, or as many as SLIPSTREAM_HOSTILE says. The memory stays within the bound, slow
// readers and idle connections of others are not closed, and new clients are served.
func TestUnreadAnswersAreBounded(t *testing.T) {
	if what := os.Getenv(hostileChild); what != "" {
		beHostile(t, what)
		return
	}
	eachLoop(t, testUnreadAnswersAreBounded)
}

func testUnreadAnswersAreBounded(t *testing.T, by way) {
	hostile := 2000
	if text := os.Getenv("SLIPSTREAM_HOSTILE"); text != "" {
		var err error
		if hostile, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const slow, idle = 100, 200
	budget := loop.NewBudget(0)
	f := newFixture(t, jsonOrigin)
	s := listen(t, f, by.config(Config{Listeners: smallListeners(t), Budget: budget, MaxConnections: hostile + slow + idle + 10, StallTimeout: 2 * time.Minute}))
	askOnce(t, s, "GET", "/depts/1500")

	// What LimitMemory allows for: the documents, 48 MiB, 20 KiB a connection, and the budget.
	limit := int64(16<<20/5*6 + 48<<20 + (hostile+slow+idle)*20<<10 + loop.DefaultBudget)
	before := debug.SetMemoryLimit(limit)
	defer debug.SetMemoryLimit(before)

	var reading sync.WaitGroup
	answer := len(askText(t, s, "GET", "/depts/1500"))
	for i := range slow {
		c, err := dialFrom(fmt.Sprintf("127.0.1.%d", i+1), s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		reading.Go(func() {
			go func() { _, _ = io.WriteString(c, pipeline()) }() // ends when it is read
			piece := make([]byte, 8<<10)
			for left := pipelined * answer; left > 0; {
				c.SetReadDeadline(time.Now().Add(time.Minute))
				n, err := c.Read(piece[:min(left, len(piece))])
				if err != nil {
					t.Errorf("a slow reader was closed %d bytes before the end: %v", left, err)
					return
				}
				left -= n
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	var pools []net.Conn
	for i := range idle {
		c, err := dialFrom(fmt.Sprintf("127.0.2.%d", i+1), s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		mustServe(t, c)
		pools = append(pools, c)
	}
	startHostile(t, s, hostile)
	most := int64(0)
	testkit.Eventually(t, 2*time.Minute, func() error {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, int64(m.HeapInuse+m.StackInuse))
		if is := budget.Stats(); is.Throttled == 0 || is.Closed == 0 || is.Used > is.Limit {
			return fmt.Errorf("the budget says %+v, want some throttled, some closed, and at most the limit used", is)
		}
		return nil
	})
	for range 20 {
		c, err := dialFrom("127.0.0.3", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		mustServe(t, c)
		c.Close()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, int64(m.HeapInuse+m.StackInuse))
	}
	reading.Wait()
	for _, c := range pools {
		mustServe(t, c)
	}
	if most > limit+limit/10 { // the limit of the runtime is a soft one
		t.Errorf("%d MiB of memory were in use, want at most %d", most>>20, limit>>20)
	}
	t.Logf("%d hostile connections: %d MiB in use at most, limit %d; %+v", hostile, most>>20, limit>>20, budget.Stats())
}

// mustServe asks on a connection that is open.
func mustServe(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, requestText("GET", "/depts/1500")); err != nil {
		t.Fatalf("%v: %v", c.LocalAddr(), err)
	}
	if answer, err := readAnswer(bufio.NewReader(c), "GET"); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v: got %v, %v, want 200", c.LocalAddr(), answer, err)
	}
}
