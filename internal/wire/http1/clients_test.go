package http1

import "testing"

// clients contains the heads that programs send for a plain GET or HEAD, with default settings
// unless the name says otherwise. Most were recorded; those of Firefox, Safari, Envoy, hey and the
// kubelet were written from their documentation. Heads with a reason are handed over on purpose.
var clients = []struct {
	name, in string
	want     string
	why      Reason
}{
	{"curl", "GET /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="curl/7.88.1"`, NotHandedOver},
	{"curl -I", "HEAD /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
		`HEAD /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="curl/7.88.1"`, NotHandedOver},
	{"curl -0", "GET /depts/1 HTTP/1.0\r\nHost: 127.0.0.1:8080\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
		`GET /depts/1 1.0 close Host="127.0.0.1:8080" User-Agent="curl/7.88.1"`, NotHandedOver},
	{"curl -r 0-9", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"Range: bytes=0-9\r\n" +
		"User-Agent: curl/7.88.1\r\n" +
		"Accept: */*\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="curl/7.88.1" ranged`, NotHandedOver},
	{"curl --compressed -u a:b -e", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"Authorization: Basic YTpi\r\n" +
		"User-Agent: curl/7.88.1\r\n" +
		"Accept: */*\r\n" +
		"Accept-Encoding: deflate, gzip, br, zstd\r\n" +
		"Referer: http://127.0.0.1:8080/\r\n" +
		"If-None-Match: \"x\"\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" If-None-Match="\"x\"" Accept-Encoding="deflate, gzip, br, zstd" Authorization="Basic YTpi" User-Agent="curl/7.88.1" Referer="http://127.0.0.1:8080/"`, NotHandedOver},
	{"wget", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: Wget/1.21.3\r\n" +
		"Accept: */*\r\n" +
		"Accept-Encoding: identity\r\n" +
		"Connection: Keep-Alive\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="identity" User-Agent="Wget/1.21.3"`, NotHandedOver},
	{"Python http.client", "GET /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept-Encoding: identity\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="identity"`, NotHandedOver},
	{"Python urllib.request", "GET /depts/1 HTTP/1.1\r\n" +
		"Accept-Encoding: identity\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: Python-urllib/3.11\r\n" +
		"Connection: close\r\n\r\n",
		`GET /depts/1 1.1 close Host="127.0.0.1:8080" Accept-Encoding="identity" User-Agent="Python-urllib/3.11"`, NotHandedOver},
	{"Python requests", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: python-requests/2.34.2\r\n" +
		"Accept-Encoding: gzip, deflate\r\n" +
		"Accept: */*\r\n" +
		"Connection: keep-alive\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="gzip, deflate" User-Agent="python-requests/2.34.2"`, NotHandedOver},
	{"Node fetch", "GET /depts/1 HTTP/1.1\r\n" +
		"host: 127.0.0.1:8080\r\n" +
		"connection: keep-alive\r\n" +
		"accept: */*\r\n" +
		"accept-language: *\r\n" +
		"sec-fetch-mode: cors\r\n" +
		"user-agent: node\r\n" +
		"accept-encoding: gzip, deflate\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="gzip, deflate" User-Agent="node"`, NotHandedOver},
	{"Node http", "GET /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: keep-alive\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080"`, NotHandedOver},
	{"Go", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: Go-http-client/1.1\r\n" +
		"Accept-Encoding: gzip\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="gzip" User-Agent="Go-http-client/1.1"`, NotHandedOver},
	{"Go, Request.Close", "HEAD /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: Go-http-client/1.1\r\nConnection: close\r\n\r\n",
		`HEAD /depts/1 1.1 close Host="127.0.0.1:8080" User-Agent="Go-http-client/1.1"`, NotHandedOver},
	{"Java HttpURLConnection", "GET /depts/1 HTTP/1.1\r\n" +
		"User-Agent: Java/17.0.15\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"Accept: text/html, image/gif, image/jpeg, */*; q=0.2\r\n" +
		"Connection: keep-alive\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="Java/17.0.15"`, NotHandedOver},
	{"Java HttpClient of JDK 21, HTTP_1_1", "GET /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: Java-http-client/21.0.5\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="Java-http-client/21.0.5"`, NotHandedOver},
	{"Perl HTTP::Tiny", "GET /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: HTTP-Tiny/0.080\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="HTTP-Tiny/0.080"`, NotHandedOver},
	{"ab", "GET /depts/1 HTTP/1.0\r\nHost: 127.0.0.1:8080\r\nUser-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n",
		`GET /depts/1 1.0 close Host="127.0.0.1:8080" User-Agent="ApacheBench/2.3"`, NotHandedOver},
	{"ab -k", "GET /depts/1 HTTP/1.0\r\n" +
		"Connection: Keep-Alive\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: ApacheBench/2.3\r\n" +
		"Accept: */*\r\n\r\n",
		`GET /depts/1 1.0 keep Host="127.0.0.1:8080" User-Agent="ApacheBench/2.3"`, NotHandedOver},
	{"wrk", "GET /depts/1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080"`, NotHandedOver},
	{"hey", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: hey/0.0.1\r\n" +
		"Content-Type: text/html\r\n" +
		"Accept-Encoding: gzip\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="gzip" User-Agent="hey/0.0.1"`, NotHandedOver},
	{"Chromium, a page", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"Connection: keep-alive\r\n" +
		"sec-ch-ua: \"Not:A-Brand\";v=\"8\", \"Chromium\";v=\"131\"\r\n" +
		"sec-ch-ua-mobile: ?0\r\n" +
		"sec-ch-ua-platform: \"Linux\"\r\n" +
		"Upgrade-Insecure-Requests: 1\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7\r\n" +
		"Sec-Fetch-Site: none\r\n" +
		"Sec-Fetch-Mode: navigate\r\n" +
		"Sec-Fetch-User: ?1\r\n" +
		"Sec-Fetch-Dest: document\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: en-US,en;q=0.9\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="gzip, deflate, br, zstd" User-Agent="Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"`, NotHandedOver},
	{"Firefox, fetch from another origin", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0\r\n" +
		"Accept: */*\r\n" +
		"Accept-Language: en-US,en;q=0.5\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Referer: http://app.example.com/\r\n" +
		"Origin: http://app.example.com\r\n" +
		"Connection: keep-alive\r\n" +
		"Sec-Fetch-Dest: empty\r\n" +
		"Sec-Fetch-Mode: cors\r\n" +
		"Sec-Fetch-Site: cross-site\r\n" +
		"Priority: u=4\r\n" +
		"If-None-Match: W/\"1\"\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" If-None-Match="W/\"1\"" Accept-Encoding="gzip, deflate, br, zstd" Origin="http://app.example.com" User-Agent="Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0" Referer="http://app.example.com/"`, NotHandedOver},
	{"Safari", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"Sec-Fetch-Dest: document\r\n" +
		"User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15\r\n" +
		"Upgrade-Insecure-Requests: 1\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n" +
		"Sec-Fetch-Site: none\r\n" +
		"Sec-Fetch-Mode: navigate\r\n" +
		"Accept-Language: en-GB,en;q=0.9\r\n" +
		"Priority: u=0, i\r\n" +
		"Accept-Encoding: gzip, deflate\r\n" +
		"Connection: keep-alive\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="gzip, deflate" User-Agent="Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15"`, NotHandedOver},
	{"nginx, proxy_pass", "GET /depts/1 HTTP/1.0\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"Connection: close\r\n" +
		"User-Agent: curl/7.88.1\r\n" +
		"Accept: */*\r\n" +
		"Accept-Encoding: deflate, gzip, br, zstd\r\n" +
		"X-Forwarded-For: 198.51.100.7\r\n\r\n",
		`GET /depts/1 1.0 close Host="127.0.0.1:8080" Accept-Encoding="deflate, gzip, br, zstd" User-Agent="curl/7.88.1" X-Forwarded-For="198.51.100.7"`, NotHandedOver},
	{`nginx, proxy_http_version 1.1 and Connection ""`, "GET /depts/1 HTTP/1.1\r\n" +
		"Host: api.example.com\r\n" +
		"X-Forwarded-For: 198.51.100.7, 127.0.0.1\r\n" +
		"X-Real-IP: 127.0.0.1\r\n" +
		"X-Forwarded-Proto: http\r\n" +
		"X-Request-Id: 2df1e3d18c43eb8ff75f8fa7046dc15a\r\n" +
		"User-Agent: curl/7.88.1\r\n" +
		"Accept: */*\r\n\r\n",
		`GET /depts/1 1.1 keep Host="api.example.com" X-Request-Id="2df1e3d18c43eb8ff75f8fa7046dc15a" User-Agent="curl/7.88.1" X-Forwarded-For="198.51.100.7, 127.0.0.1"`, NotHandedOver},
	{"HAProxy, option forwardfor", "GET /depts/1 HTTP/1.1\r\n" +
		"host: 127.0.0.1:8080\r\n" +
		"user-agent: curl/7.88.1\r\n" +
		"accept: */*\r\n" +
		"x-forwarded-for: 198.51.100.7\r\n" +
		"x-forwarded-for: 127.0.0.1\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="curl/7.88.1" X-Forwarded-For="198.51.100.7" X-Forwarded-For="127.0.0.1"`, NotHandedOver},
	{"HAProxy, health check", "GET /ready HTTP/1.0\r\n\r\n",
		`GET /ready 1.0 close`, NotHandedOver},
	{"Varnish", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: curl/7.88.1\r\n" +
		"Accept: */*\r\n" +
		"X-Forwarded-For: 198.51.100.7, 127.0.0.1\r\n" +
		"Accept-Encoding: gzip\r\n" +
		"X-Varnish: 3\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" Accept-Encoding="gzip" User-Agent="curl/7.88.1" X-Forwarded-For="198.51.100.7, 127.0.0.1"`, NotHandedOver},
	{"Envoy", "GET /depts/1 HTTP/1.1\r\n" +
		"host: api.example.com\r\n" +
		"user-agent: curl/7.88.1\r\n" +
		"accept: */*\r\n" +
		"x-forwarded-proto: http\r\n" +
		"x-request-id: 6f0a2c1e-3a52-4b8e-9f0b-0a9c3d1b2e4f\r\n" +
		"x-envoy-expected-rq-timeout-ms: 15000\r\n" +
		"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n",
		`GET /depts/1 1.1 keep Host="api.example.com" X-Request-Id="6f0a2c1e-3a52-4b8e-9f0b-0a9c3d1b2e4f" Traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" User-Agent="curl/7.88.1"`, NotHandedOver},
	{"kubelet, probe", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 10.0.0.7:8080\r\n" +
		"User-Agent: kube-probe/1.31\r\n" +
		"Accept: */*\r\n" +
		"Connection: close\r\n\r\n",
		`GET /depts/1 1.1 close Host="10.0.0.7:8080" User-Agent="kube-probe/1.31"`, NotHandedOver},
	{"curl through a proxy", "GET http://origin.example/depts/1 HTTP/1.1\r\n" +
		"Host: origin.example\r\n" +
		"User-Agent: curl/7.88.1\r\n" +
		"Accept: */*\r\n" +
		"Proxy-Connection: Keep-Alive\r\n\r\n",
		"", ReasonTarget},
	{"curl --http2", "GET /depts/1 HTTP/1.1\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: curl/7.88.1\r\n" +
		"Accept: */*\r\n" +
		"Connection: Upgrade, HTTP2-Settings\r\n" +
		"Upgrade: h2c\r\n" +
		"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="curl/7.88.1"`, NotHandedOver},
	{"Java HttpClient, HTTP_2", "GET /depts/1 HTTP/1.1\r\n" +
		"Connection: Upgrade, HTTP2-Settings\r\n" +
		"Content-Length: 0\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA\r\n" +
		"Upgrade: h2c\r\n" +
		"User-Agent: Java-http-client/17.0.15\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="Java-http-client/17.0.15"`, NotHandedOver},
	{"Java HttpClient of JDK 17, HTTP_1_1", "GET /depts/1 HTTP/1.1\r\n" +
		"Content-Length: 0\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: Java-http-client/17.0.15\r\n\r\n",
		`GET /depts/1 1.1 keep Host="127.0.0.1:8080" User-Agent="Java-http-client/17.0.15"`, NotHandedOver},
	{"Perl LWP", "GET /depts/1 HTTP/1.1\r\n" +
		"TE: deflate,gzip;q=0.3\r\n" +
		"Connection: TE, close\r\n" +
		"Host: 127.0.0.1:8080\r\n" +
		"User-Agent: libwww-perl/6.68\r\n\r\n",
		"", ReasonConnection},
}

func TestClients(t *testing.T) {
	for _, c := range clients {
		h, n, v, why := scanOne(c.in)
		if why != c.why || (v == Done) != (c.why == NotHandedOver) {
			t.Errorf("%s: %v, %v, want %v", c.name, v, why, c.why)
			continue
		}
		checkSplit(t, []byte(c.in), testLimit, func() int { return 3 })
		if v != Done {
			continue
		}
		if got := describe(h); got != c.want || n != len(c.in) {
			t.Errorf("%s: %d bytes of %d\n got %s\nwant %s", c.name, n, len(c.in), got, c.want)
		}
		checkAgainstNetHTTP(t, []byte(c.in), h)
	}
}
