package rpc_test

import (
	"os"
	"testing"

	"github.com/slipstream-go/slipstream/internal/buf"
)

func TestMain(m *testing.M) {
	buf.Check() // memory that is used after it was released has other contents
	runChild()
	os.Exit(m.Run())
}
