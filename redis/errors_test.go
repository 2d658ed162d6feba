package redis_test

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
)

// The texts of scripts' replies are not used as status codes.
//
// mutant: redis-status-code-of-any-text
func TestStatusCode(t *testing.T) {
	for code, want := range map[string]string{
		"WRONGTYPE": "WRONGTYPE", "ERR": "ERR", "MY-CODE_2": "MY-CODE_2", strings.Repeat("A", 32): strings.Repeat("A", 32),
		"": "ERR", "user:17": "ERR", "Wrong": "ERR", "É": "ERR", strings.Repeat("A", 33): "ERR",
	} {
		if got := (&redis.ServerError{Code: code, Message: "text"}).StatusCode(); got != want {
			t.Errorf("the status code of %q is %q, expected %q", code, got, want)
		}
	}
}
