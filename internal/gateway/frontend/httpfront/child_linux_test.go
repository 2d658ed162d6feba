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
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// childEnv makes the test binary a process of its own that a test starts: a server
// ("server epoll 3000 188743680": how many connections, how many bytes of memory), clients
// that ask and never read ("hostile 127.0.0.1:80 2000"), or a crowd that asks when it is told
// to ("crowd 127.0.0.1:80 3000").
const childEnv = "SLIPSTREAM_HTTP_CHILD"

// childTest is the test that such a process runs.
const childTest = "TestUnreadAnswersAreBounded"

// isChild is the whole life of such a process. It returns false in others.
func isChild(t *testing.T) bool {
	words := strings.Fields(os.Getenv(childEnv))
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

// pipeline is what each hostile and each slow client asks for.
func pipeline() string { return strings.Repeat(requestText("GET", "/depts/1500"), pipelined) }

const pipelined = 250

// beHostile asks on many connections and reads nothing, until its input ends.
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

// beCrowd asks once on each of many connections and waits for the answer. For a line of its
// input it sends a pipeline on each, of which it reads nothing, until its input ends.
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

// mustServe asks on a connection that is open.
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

// child is such a process as its test sees it.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, words string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+childTest+"$")
	cmd.Env = append(os.Environ(), childEnv+"="+words)
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
	c := &child{t, cmd, in, bufio.NewReader(out)}
	t.Cleanup(c.end)
	return c
}

// end ends the process if it runs, and waits for it.
func (c *child) end() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.cmd.Wait()         // killed
}

// say gives the process a line.
func (c *child) say() {
	c.t.Helper()
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		c.t.Fatal(err)
	}
}

// line returns the next line of its output.
func (c *child) line() string {
	c.t.Helper()
	text, err := c.out.ReadString('\n')
	if err != nil {
		rest, _ := io.ReadAll(c.out) // what a test prints when it fails
		c.t.Fatalf("a child process: %v\n%s%s", err, text, rest)
	}
	return strings.TrimSpace(text)
}

// hears waits for a line of its output.
func (c *child) hears(want string) {
	c.t.Helper()
	if got := c.line(); got != want {
		rest, _ := io.ReadAll(c.out)
		c.t.Fatalf("a child process says %q, want %q\n%s", got, want, rest)
	}
}

// budget asks a server for the state of its budget.
func (c *child) budget() (is loop.BudgetStats) {
	c.t.Helper()
	c.say()
	if _, err := fmt.Sscan(c.line(), &is.Used, &is.Limit, &is.Closed, &is.Throttled); err != nil {
		c.t.Fatal(err)
	}
	return is
}

// mostMemory returns how much memory the process has had at most, in bytes: its own and that
// of its program, of which the system keeps only what was used.
func (c *child) mostMemory() int64 {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		c.t.Fatalf("no VmHWM: %v\n%s", err, text)
	}
	return kib << 10
}

// startCrowd starts that many clients, which are connected when it returns.
func startCrowd(t *testing.T, s *Server, n int) *child {
	t.Helper()
	c := startChild(t, fmt.Sprintf("crowd %s %d", s.Addr(), n))
	c.hears("connected")
	return c
}

// hostileClients is how many hostile clients there are: usual, or what SLIPSTREAM_HOSTILE says.
func hostileClients(t *testing.T, usual int) int {
	t.Helper()
	if text := os.Getenv("SLIPSTREAM_HOSTILE"); text != "" {
		return number(t, text)
	}
	return usual
}
