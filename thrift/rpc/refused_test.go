package rpc

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// An attempt to connect counts as refused if the address refuses it or if the path does not exist.
func TestWhatIsARefusal(t *testing.T) {
	const wsaeConnRefused = 10061
	for errno, want := range map[syscall.Errno]bool{
		syscall.ECONNREFUSED: true, syscall.ENOENT: true, wsaeConnRefused: runtime.GOOS == "windows",
		syscall.ECONNRESET: false, syscall.EHOSTUNREACH: false, syscall.ETIMEDOUT: false,
	} {
		err := fmt.Errorf("connect: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)})
		if refused(err) != want {
			t.Errorf("%v: %v, want %v", err, !want, want)
		}
	}
	for _, err := range []error{context.DeadlineExceeded, net.ErrClosed, &net.DNSError{IsNotFound: true}} {
		if refused(err) {
			t.Errorf("%v is a refusal", err)
		}
	}
}
