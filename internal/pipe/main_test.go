package pipe

import (
	"os"
	"testing"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// All tests run with checked pools: memory that is released twice, or used after its release, fails the test.
func TestMain(m *testing.M) {
	if len(testkit.ChildWords()) > 0 {
		serveSmall()
	}
	buf.Check()
	os.Exit(m.Run())
}
