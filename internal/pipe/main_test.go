package pipe

import (
	"os"
	"testing"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// All tests run with checked pools: memory given back twice, or used after it
// was given back, ends them.
func TestMain(m *testing.M) {
	buf.Check()
	os.Exit(m.Run())
}
