package disk

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// childEnv makes the test binary another program: its value is the role and the
// directory.
const (
	childEnv    = "SLIPSTREAM_DISK_CHILD"
	childDirEnv = "SLIPSTREAM_DISK_CHILD_DIR"
	childSeed   = "SLIPSTREAM_DISK_CHILD_SEED"
)

func TestMain(m *testing.M) {
	role := os.Getenv(childEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	dir := os.Getenv(childDirEnv)
	seed, err := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	if err == nil {
		err = map[string]func(string, uint64) error{"hold": hold, "work": work, "open": openAndClose, "fill": fillUp}[role](dir, seed)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child describes a process of the test binary that does one of the above.
func child(role, dir string, seed uint64) testkit.Command {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return testkit.Command{Path: path, Env: []string{childEnv + "=" + role, childDirEnv + "=" + dir, childSeed + "=" + strconv.FormatUint(seed, 10)}}
}

// hold has the file open until it is killed.
func hold(dir string, _ uint64) error {
	tier, err := Open(Options{Dir: dir, Budget: MinBudget})
	if err != nil {
		return err
	}
	defer tier.Close()
	fmt.Println("held")
	_, err = io.Copy(io.Discard, blocked{})
	return err
}

// blocked is received from forever.
type blocked struct{}

func (blocked) Read([]byte) (int, error) { select {} }

func openAndClose(dir string, _ uint64) error {
	tier, err := Open(Options{Dir: dir, Budget: MinBudget})
	if err != nil {
		return err
	}
	return tier.Close()
}

// asNobody makes a program run as an unprivileged user, if the tests run as
// root.
func asNobody() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}
