package judges

import (
	"fmt"
	"testing"

	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

func TestMain(m *testing.M) { blackbox.Main(m) }

// attributes returns string and number attributes of OTLP as text.
func attributes(list []*commonpb.KeyValue) map[string]string {
	values := make(map[string]string)
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			values[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			values[kv.Key] = fmt.Sprint(v.IntValue)
		}
	}
	return values
}
