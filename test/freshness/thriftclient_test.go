//go:build unix

package freshness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// overThrift asks by get for one document and by list for several, with the IDL that was printed before the gateway
// started.
type overThrift struct {
	client *rpc.Client
	call   *genericrpc.Client
}

// numberFields writes the numbers of fields into a configuration and returns the IDL.
func numberFields(t *testing.T, file string) *idl.Service {
	t.Helper()
	text := blackbox.Expect(t, blackbox.ExitOK, "service Slipstream {", "", "idl", "-c", file, "--assign").Stdout
	program, err := idl.Load(idl.Config{ReadFile: func(string) ([]byte, error) { return []byte(text), nil }}, "slipstream.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return program.Roots[0].Service("Slipstream")
}

func newOverThrift(t *testing.T, port int, service *idl.Service, config rpc.ClientConfig) overThrift {
	t.Helper()
	config.Addr, config.Timeout = fmt.Sprintf("127.0.0.1:%d", port), 10*time.Second
	c, err := rpc.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	call, err := genericrpc.NewClient(c, service, genericrpc.Config{Compact: config.Compact})
	if err != nil {
		t.Fatal(err)
	}
	return overThrift{c, call}
}

// close drops what is in flight; nothing waits for it anymore.
func (o overThrift) close() { _ = o.client.Close() }

func (o overThrift) ask(path string) (status int, body []byte, hit bool) {
	ctx := context.Background() // bounded by the client's Timeout
	resource, query, several := strings.Cut(path[1:], "?")
	if !several {
		resource, key, _ := strings.Cut(resource, "/")
		body, err := o.call.Call(ctx, "get_"+resource, fmt.Appendf(nil, `{"key":%q}`, key))
		if e, ok := errors.AsType[*genericrpc.Exception](err); ok && e.Field.Name == "not_found" {
			return http.StatusNotFound, nil, false
		} else if err != nil {
			return 0, nil, false
		}
		return http.StatusOK, unpacked(body), false
	}
	keys := strings.Split(query, "&")
	for i, k := range keys {
		keys[i] = strings.TrimPrefix(k, "key=")
	}
	args, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		return 0, nil, false
	}
	text, err := o.call.Call(ctx, "list_"+resource, args)
	var entries []struct{ Document json.RawMessage }
	if err != nil || json.Unmarshal(text, &entries) != nil {
		return 0, nil, false
	}
	parts := make([]string, len(entries))
	for i, e := range entries {
		if parts[i] = "null"; e.Document != nil {
			parts[i] = string(unpacked(e.Document))
		}
	}
	return http.StatusOK, []byte("[" + strings.Join(parts, ",") + "]"), false
}

// unpacked returns the document of a resource that is defined by SQL, which is a binary value, and any other as it is.
func unpacked(document []byte) []byte {
	var text []byte
	if len(document) > 0 && document[0] == '"' && json.Unmarshal(document, &text) == nil {
		return text
	}
	return document
}
