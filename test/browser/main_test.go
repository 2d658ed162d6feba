package browser

import (
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

func TestMain(m *testing.M) { blackbox.Main(m) }
