package httpfront

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"/depts/1", "/orders/a%2Fb/1", "/%zz", "*", "", "/orders//", "/blobs/00?x"} {
		f.Add(s)
	}
	x := newFixture(f, echo)
	f.Fuzz(func(t *testing.T, target string) {
		var rsp Response
		req := Request{Method: "GET", Target: target, Start: x.cache.Now()}
		if x.service.Peek(&req, &rsp) {
			if rsp.Status != 200 && rsp.Status != 404 && (rsp.Status < 400 || rsp.Body == nil) {
				t.Errorf("%q: status %d without a body", target, rsp.Status)
			}
			return
		}
		v, key := req.question.of, req.question.key
		if req.question.keys != nil {
			return
		}
		// What is accepted has one spelling: writing it and reading it again gives the same key.
		path, err := resource.Path("r", *v.Columns(), key.ID)
		if err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		_, rest, _, _ := splitTarget(path)
		if again, err := parseKey(*v.Columns(), rest); err != nil || again != key.ID {
			t.Errorf("%q: key %q is written %s, which reads as %q (%v)", target, key.ID, path, again, err)
		}
	})
}

func FuzzTagListed(f *testing.F) {
	f.Add(`"a", W/"b"`, `"b"`)
	f.Add(`*`, `"b"`)
	f.Fuzz(func(t *testing.T, list, tag string) {
		tag = `"` + strings.ReplaceAll(tag, `"`, "") + `"`
		if strong, weak := tagListed(list, tag, false), tagListed(list, tag, true); strong && !weak {
			t.Errorf("%q lists %q strongly but not weakly", list, tag)
		}
		if !tagListed(tag+", "+list, tag, false) {
			t.Errorf("%q does not match itself", tag)
		}
	})
}
