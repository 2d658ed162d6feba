package httpfront

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Requests that no client would send get a clear answer, the same each time, and
// do not affect the next client.
func TestHostileFields(t *testing.T) { eachServer(t, testHostileFields) }

func testHostileFields(t *testing.T, by way) {
	testkit.NoLeaks(t)
	f := newConfigured(t, jsonOrigin, ServiceConfig{
		RequestConfig: frontend.RequestConfig{Gate: newGate(t)},
		Compression:   []string{"zstd", "gzip"},
		CORS:          CORS{Origins: []string{"https://app.example"}},
	}, func(r []frontend.Resource) { r[2].Access = &access.Rule{Keys: []string{"*"}} })
	s := listen(t, f, by.config(Config{}))
	line := func(name, value string) string { return name + ": " + value + "\r\n" }
	repeat := func(n int, text string) string { return strings.Repeat(text, n) }
	for _, test := range []struct {
		name, target, fields string
		want                 string // status; alternatives divided by a bar, "" is a closed connection
	}{
		{"Accept-Encoding of 20 KB", "/depts/2000", line("Accept-Encoding", repeat(4000, "gzip,")), "200"},
		{"Accept-Encoding with a thousand lines", "/depts/2000", repeat(1000, line("Accept-Encoding", "gzip")), "200"},
		{"Accept-Encoding without names", "/depts/2000", line("Accept-Encoding", repeat(100, ";q=0,")), "200"},
		{"Accept-Encoding with weights that are none", "/depts/2000", line("Accept-Encoding", "gzip;q=nan, zstd;q=-1, *;q=1e9"), "200"},
		{"nothing accepted", "/depts/2000", line("Accept-Encoding", "*;q=0"), "406"},
		{"If-None-Match of 40 KB", "/depts/2000", line("If-None-Match", repeat(4000, `"x", W/"`)), "200"},
		{"If-None-Match that is no list", "/depts/2000", line("If-None-Match", "x"), "200"},
		{"If-None-Match and If-Match", "/depts/2000", line("If-None-Match", "*") + line("If-Match", `"x"`), "412"},
		{"two API keys", "/blobs/00", line("X-API-Key", webKey) + line("X-API-Key", mobileKey), "400"},
		{"API key of 50 KB", "/blobs/00", line("X-API-Key", repeat(50_000, "k")), "401"},
		{"token of 50 KB", "/blobs/00", line("Authorization", "Bearer "+repeat(50_000, "a")), "401"},
		{"token of dots", "/blobs/00", line("Authorization", "Bearer "+repeat(8000, ".")), "400|401"},
		{"Authorization that is empty", "/blobs/00", line("Authorization", ""), "401|400"},
		{"two tokens in one field", "/blobs/00", line("Authorization", "Bearer a.b.c, Bearer a.b.c"), "400|401"},
		{"ranges", "/depts/2000", line("Range", "bytes=0-1,"+repeat(5000, "5-6,")), "200"},
		{"a range that begins behind the end", "/depts/2000", line("Range", "bytes=99999999999999999999-"), "200"},
		{"two origins", "/depts/2000", line("Origin", "https://app.example") + line("Origin", "https://evil.example"), "200"},
		{"an origin of 30 KB", "/depts/2000", line("Origin", "https://"+repeat(30_000, "a")), "200"},
		{"forwarded for thousands", "/depts/2000", line("X-Forwarded-For", repeat(5000, "1.2.3.4,")), "200"},
		{"request id with a line break", "/depts/2000", line("X-Request-Id", "a\rb"), "200|400"},
		{"traceparent of 10 KB", "/depts/2000", line("Traceparent", repeat(10_000, "0")), "200"},
		{"two hosts", "/depts/2000", line("Host", "other"), "400"},
		{"a field without a name", "/depts/2000", ": x\r\n", "400"},
		{"a name with a blank", "/depts/2000", "X Y: x\r\n", "400"},
		{"a field that is folded", "/depts/2000", "X: a\r\n b\r\n", "200|400"},
		{"five thousand fields", "/depts/2000", repeat(5000, "X: a\r\n"), "200|431"},
		{"a head of 200 KB", "/depts/2000", line("X", repeat(200_000, "a")), "431|"},
		{"a body that is longer than it says", "/depts/2000", line("Content-Length", "3"), "200|400|"},
		{"contradicting lengths", "/depts/2000", line("Content-Length", "3") + line("Content-Length", "4"), "400"},
		{"a length that is none", "/depts/2000", line("Content-Length", "-1"), "400"},
		{"batch with an escape that is none", "/depts?key=%", "", "400"},
		{"batch of one huge key", "/depts?key=" + repeat(50_000, "1"), "", "400"},
		{"batch of empty keys", "/depts?" + repeat(500, "key=&"), "", "400"},
		{"batch of 20,000 separators", "/depts?" + repeat(20_000, "&"), "", "400"},
	} {
		for range 2 {
			statuses := raw(t, s, "GET "+test.target+" HTTP/1.1\r\nHost: h\r\n"+test.fields+"Connection: close\r\n\r\n")
			got := ""
			if len(statuses) > 0 {
				got = statuses[0]
			}
			if !strings.Contains("|"+test.want+"|", "|"+got+"|") {
				t.Errorf("%s: status %q, want %s", test.name, got, test.want)
			}
		}
		r := f.do("GET", "/depts/300")
		if r.StatusCode != 200 {
			t.Fatalf("after %s the next client gets %d", test.name, r.StatusCode)
		}
	}
}
