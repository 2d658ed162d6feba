package rpc_test

import (
	"os"
	"testing"

	"github.com/slipstream-go/slipstream/internal/buf"
)

func TestMain(m *testing.M) {
	runMeasured()
	buf.Check() // overwrites released memory, so that use after release is detected
	runChild()
	os.Exit(m.Run())
}
