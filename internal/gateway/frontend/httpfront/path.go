package httpfront

import (
	"net/url"
	"strings"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// maxTarget bounds the request target of one document, in bytes: eight text columns of the
// longest allowed value, percent-encoded, deliberately do not fit.
const maxTarget = 8 << 10

// splitTarget splits a request target in origin form into the name of the resource,
// the rest of the path, and the query. single says that there is a rest, so one
// document is requested; its query is not part of the key and is ignored.
func splitTarget(target string) (name, path, query string, single bool) {
	target, query, _ = strings.Cut(target, "?")
	if target == "" || target[0] != '/' {
		return "", "", "", false
	}
	name, path, single = strings.Cut(target[1:], "/")
	if strings.IndexByte(name, '%') >= 0 {
		if decoded, err := url.PathUnescape(name); err == nil {
			name = decoded
		}
	}
	return name, path, query, single
}

// parseKey returns the ID of the key in the path after the resource's name.
// Without percent signs it allocates only for keys of several columns.
func parseKey(columns []resource.KeyColumn, path string) (string, error) {
	return resource.ParseID(columns, path, '/')
}
