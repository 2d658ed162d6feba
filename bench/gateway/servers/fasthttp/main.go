// Command fasthttp serves prepared responses with fasthttp: without a router, the key is taken from
// the path. It sends the same header fields as the server on net/http and answers a matching
// If-None-Match, by comparing strings, with 304.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"net"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/slipstream-go/slipstream/bench/internal/depts"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

type document struct {
	body []byte
	etag []byte
}

func main() {
	buffers := flag.Int("buffers", 0, "`bytes` of the read and of the write buffer of a connection; if 0, the library's 4 KiB")
	flag.Parse()
	documents := map[string]*document{}
	for n := int64(1); n <= depts.Count; n++ {
		d := depts.Make(n)
		body := d.AppendJSON(nil)
		sum := sha256.Sum256(body)
		documents[strconv.FormatInt(n, 10)] = &document{
			body: body,
			etag: []byte(`"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`),
		}
	}
	prefix := []byte("/depts/")
	serve := func(ctx *fasthttp.RequestCtx) {
		key, found := bytes.CutPrefix(ctx.Path(), prefix)
		d := documents[string(key)]
		if !found || d == nil || !ctx.IsGet() {
			ctx.Error("not found", fasthttp.StatusNotFound)
			return
		}
		ctx.Response.Header.SetBytesV(fasthttp.HeaderETag, d.etag)
		ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-cache")
		if bytes.Equal(ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch), d.etag) {
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
		ctx.SetContentType("application/json")
		ctx.Response.SetBodyRaw(d.body)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.Announce(listener); err != nil {
		sidecar.Fatal(err)
	}
	server := &fasthttp.Server{Handler: serve, Name: "fasthttp", ReadBufferSize: *buffers, WriteBufferSize: *buffers}
	sidecar.Fatal(server.Serve(listener))
}
