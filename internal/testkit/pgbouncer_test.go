package testkit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A pooler that has crashed is restarted, and one that was stopped is not.
func TestCrashedPoolerIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	script := `echo x >>"$1"; if [ "$(wc -l <"$1")" -lt 3 ]; then echo "LOG x"; echo "2026-01-01 UTC [1] FATAL @src/objects.c:1060 in function"; exit 1; fi; sleep 600`
	command := Command{Path: "sh", Args: []string{"-c", script, "sh", ran}}
	first := Start(t, command)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(ended)
		restartAfterCrash(t, first, command, stop)
	}()
	Eventually(t, 30*time.Second, func() error {
		text, err := os.ReadFile(ran)
		if err == nil && string(text) != "x\nx\nx\n" {
			err = errors.New("it did not run three times")
		}
		return err
	})
	close(stop)
	<-ended
	quiet := Start(t, Command{Path: "sleep", Args: []string{"600"}})
	quiet.Kill()
	restartAfterCrash(t, quiet, Command{Path: "/does/not/exist"}, make(chan struct{})) // returns immediately
}
