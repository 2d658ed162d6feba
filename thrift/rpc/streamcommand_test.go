package rpc_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// slipstream call thrift opens streams of a server of Kitex.
func TestCommandWithStreamsOfKitex(t *testing.T) {
	port, lines := startKitexStreams(t)
	program := filepath.Join(t.TempDir(), "slipstream.exe")
	runTool(t, "../..", "go", "build", "-o", program, "./cmd/slipstream")
	addr := net.JoinHostPort("127.0.0.1", port)
	start := func(function, data string) (c *exec.Cmd, stdin io.WriteCloser, stdout *bufio.Reader, stderr *bytes.Buffer) {
		c = exec.CommandContext(t.Context(), program, "call", "thrift", "-f", "testdata/chat.thrift", "-v", "-H", "USER=b", "--meta-persistent", "TENANT=a", "-t", "60", "-d", data, addr, "Chat."+function)
		stderr = new(bytes.Buffer)
		c.Stderr = stderr
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, in, bufio.NewReader(out), stderr
	}
	testkit.Eventually(t, patience, func() error { // Kitex's server needs a moment
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err
	})
	for _, one := range []struct {
		function, data string
		code           int
		stdout, stderr string
	}{
		{"talk", `{"text": "headers", "number": 1} {"text": "meta"}`, 0, `{"text":"headers","number":1}` + "\n" + `{"text":"a b","number":-1}` + "\n", "trailer cost: 7\n"},
		{"collect", `{} {} {}`, 0, `{"text":"","number":3}` + "\n", ""},
		{"watch", `{"text": "x", "number": 2}`, 0, `{"text":"x","number":0}` + "\n" + `{"text":"x","number":1}` + "\n", ""},
		{"talk", `{"text": "status sold out"}`, 1, "", "status 7: sold out"},
		{"talk", `{"text": "fail broken"}`, 1, "", "broken"},
	} {
		c, _, stdout, stderr := start(one.function, one.data)
		text, err := io.ReadAll(stdout)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if code := c.ProcessState.ExitCode(); code != one.code || string(text) != one.stdout || !strings.Contains(stderr.String(), one.stderr) {
			t.Errorf("%s %s: exit %d\n%s%s", one.function, one.data, code, text, stderr)
		}
	}
	if runtime.GOOS == "windows" {
		return // no process can send the signal there
	}
	// Interactive, and then canceled.
	c, stdin, stdout, stderr := start("talk", "-")
	for _, line := range []string{`{"text":"one","number":1}` + "\n", `{"text":"two","number":2}` + "\n"} {
		if _, err := io.WriteString(stdin, line); err != nil {
			t.Fatal(err)
		}
		if got, err := stdout.ReadString('\n'); err != nil || got != line {
			t.Fatalf("%q, %v\n%s", got, err, stderr)
		}
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](c.Wait()); !ok || exit.ExitCode() != 130 {
		t.Errorf("%v\n%s", exit, stderr)
	}
	// A handler that waits for its context is notified of the end.
	c, stdin, _, stderr = start("talk", "-")
	if _, err := io.WriteString(stdin, `{"text": "announce"}`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"waiting", "code=12007"} {
		select {
		case line := <-lines:
			if !strings.Contains(line, want) {
				t.Errorf("the handler says %q, want %s", line, want)
			}
		case <-time.After(patience):
			t.Fatalf("the handler does not say %s\n%s", want, stderr)
		}
		if want == "waiting" {
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = c.Wait()
}
