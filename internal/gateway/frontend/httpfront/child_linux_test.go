package httpfront

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// childTest is the test that child processes run.
const childTest = "TestUnreadAnswersAreBounded"

// isChild is the whole life of a process that a test starts: a server ("server epoll 3000
// 188743680": the maximum of connections and of bytes of memory), clients that send requests and
// never read ("hostile 127.0.0.1:80 2000"), or a crowd that sends requests on command ("crowd
// 127.0.0.1:80 3000"). It returns false in other processes.
func isChild(t *testing.T) bool {
	words := testkit.ChildWords()
	if len(words) == 0 {
		return false
	}
	map[string]func(*testing.T, []string){"server": beServer, "hostile": beHostile, "crowd": beCrowd}[words[0]](t, words[1:])
	return true
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// beServer serves small documents within a budget until its input ends. It prints its
// address, and for each line of its input the state of the budget.
func beServer(t *testing.T, words []string) {
	var by way
	for _, by = range ways {
		if by.name == words[0] {
			break
		}
	}
	debug.SetMemoryLimit(int64(number(t, words[2])))
	budget := loop.NewBudget(0)
	s := listen(t, newFixture(t, jsonOrigin), by.config(Config{
		ConnConfig: frontend.ConnConfig{Budget: budget, MaxConnections: number(t, words[1]), StallTimeout: 2 * time.Minute},
	}), smallListeners(t)...)
	fmt.Println(s.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		is := budget.Stats()
		fmt.Println(is.Used, is.Limit, is.Closed, is.Throttled)
	}
}

// smallListeners listens with sockets that send little ahead, so that the kernel does not
// hold the bytes that the server has to bound.
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

// dialFrom connects from an address of the loopback network with a small receive buffer.
func dialFrom(t *testing.T, ip, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: patience, Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) {
			failure = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10)
		})
		return errors.Join(err, failure)
	}}
	c, err := d.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pipeline is the requests of each hostile and each slow client.
func pipeline() string { return strings.Repeat(requestText("GET", "/depts/1500"), pipelined) }

const pipelined = 250

// beHostile sends requests on many connections and reads nothing, until its input
// ends.
func beHostile(t *testing.T, words []string) {
	text := []byte(pipeline())
	for range number(t, words[1]) {
		c := dialFrom(t, "127.0.0.66", words[0])
		defer c.Close()
		go func() { // ends when the server closes the connection, or with the process
			_, _ = c.Write(text)
		}()
	}
	fmt.Println("hostile")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// beCrowd sends one request on each of many connections and waits for the answer. For each
// line of its input it sends a pipeline on each connection, and reads none of the answers,
// until its input ends.
func beCrowd(t *testing.T, words []string) {
	var conns []net.Conn
	for range number(t, words[1]) {
		c := dialFrom(t, "127.0.0.66", words[0])
		defer c.Close()
		mustServe(t, c)
		conns = append(conns, c)
	}
	fmt.Println("connected")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	text := []byte(pipeline())
	for _, c := range conns {
		c.SetDeadline(time.Now().Add(patience))
		if _, err := c.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("sent")
	_, _ = io.Copy(io.Discard, in)
}

// mustServe sends a request on an open connection.
func mustServe(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, requestText("GET", "/depts/1500")); err != nil {
		t.Fatalf("%v: %v", c.LocalAddr(), err)
	}
	if answer, err := readAnswer(bufio.NewReader(c), "GET"); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v: got %v, %v, want 200", c.LocalAddr(), answer, err)
	}
}

// child is the test's handle of such a process.
type child struct{ *testkit.Child }

func startChild(t *testing.T, words string) child {
	t.Helper()
	return child{testkit.StartChild(t, words, "-test.run=^"+childTest+"$")}
}

// budget asks a server for the state of its budget.
func (c child) budget(t *testing.T) (is loop.BudgetStats) {
	t.Helper()
	c.Poke()
	if _, err := fmt.Sscan(c.Line(), &is.Used, &is.Limit, &is.Closed, &is.Throttled); err != nil {
		t.Fatal(err)
	}
	return is
}

// maxMemory returns the peak memory of the process in bytes, including the used part of its
// program file.
func (c child) maxMemory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("no VmHWM: %v\n%s", err, text)
	}
	return kib << 10
}

// startCrowd starts n clients, which are connected when it returns.
func startCrowd(t *testing.T, s *Server, n int) child {
	t.Helper()
	c := startChild(t, fmt.Sprintf("crowd %s %d", s.Addr(), n))
	c.Expect("connected")
	return c
}

// hostileClients returns the number of hostile clients: usual, or SLIPSTREAM_HOSTILE.
func hostileClients(t *testing.T, usual int) int {
	t.Helper()
	if text := os.Getenv("SLIPSTREAM_HOSTILE"); text != "" {
		return number(t, text)
	}
	return usual
}
