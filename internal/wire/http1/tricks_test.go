package http1

import (
	"bytes"
	"strings"
	"testing"
)

// tricks contains requests that some servers have interpreted differently than others, and similar
// requests. If a trick is documented, from says where. Requests without a reason are accepted, and
// want is their meaning.
var tricks = []struct {
	name, from string
	in         string
	why        Reason
	want       string
}{
	// Framing of bodies.
	{"content-length and transfer-encoding", "RFC 9112, 6.1; CVE-2005-2088; CVE-2019-20445",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", ReasonBody, ""},
	{"transfer-encoding and content-length", "RFC 9112, 6.1; CVE-2017-7658",
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", ReasonBody, ""},
	{"two content-lengths", "RFC 9112, 6.3; CVE-2015-5740; CVE-2019-16792",
		"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\n", ReasonBody, ""},
	{"content-length list", "RFC 9112, 6.3", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n", ReasonBody, ""},
	{"content-length of a GET", "RFC 9110, 9.3.1", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", ReasonBody, ""},
	{"content-length 0", "", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"content-length 0 of a HEAD", "", "HEAD / HTTP/1.0\r\nContent-Length: \t0 \r\n\r\n", 0, `HEAD / 1.0 close`},
	{"content-length 0 twice", "RFC 9112, 6.3", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", ReasonBody, ""},
	{"content-length 00", "", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n", ReasonBody, ""},
	{"content-length 0 and chunked", "RFC 9112, 6.1", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonBody, ""},
	{"content-length 0 and a list", "RFC 9112, 6.3", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 5\r\n\r\nhello", ReasonBody, ""},
	{"content-length of a HEAD", "", "HEAD / HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\n\r\n", ReasonBody, ""},
	{"content-length empty", "CVE-2023-40225", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", ReasonBody, ""},
	{"content-length with a sign", "RFC 9110, 8.6", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", ReasonBody, ""},
	{"content-length hexadecimal", "", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", ReasonBody, ""},
	{"content-length too large for 64 bits", "", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", ReasonBody, ""},
	{"chunked", "RFC 9112, 7.1", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonBody, ""},
	{"chunked in HTTP/1.0", "RFC 9112, 6.1", "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonBody, ""},
	{"xchunked", "CVE-2019-16786", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", ReasonBody, ""},
	{"chunked after identity", "", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n", ReasonBody, ""},
	{"chunked twice", "CVE-2020-8287", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n", ReasonBody, ""},
	{"chunked after a tab", "", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n", ReasonBody, ""},
	{"chunked in upper case", "", "GET / HTTP/1.1\r\nHost: a\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n", ReasonBody, ""},
	{"chunked after a vertical tab", "CVE-2019-16789", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \vchunked\r\n\r\n", ReasonFieldValue, ""},
	{"chunked before a NUL", "", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x00\r\n\r\n", ReasonFieldValue, ""},
	{"space before the colon", "RFC 9112, 5.1; CVE-2019-16869; CVE-2019-16276; CVE-2021-22959",
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n", ReasonSpace, ""},
	{"tab before the colon", "RFC 9112, 5.1", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n", ReasonSpace, ""},
	{"vertical tab before the colon", "", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\v: chunked\r\n\r\n", ReasonFieldName, ""},
	{"NUL before the colon", "CVE-2024-52530", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\x00: chunked\r\n\r\n", ReasonFieldName, ""},
	{"space for the hyphen", "CVE-2015-5739", "GET / HTTP/1.1\r\nHost: a\r\nContent Length: 4\r\n\r\n", ReasonFieldName, ""},
	{"underscore for the hyphen", "", "GET / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"chunked folded", "CVE-2022-32215", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n", ReasonFolding, ""},
	{"body of a GET without a length is the next request", "", "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"expect", "RFC 9110, 10.1.1; CVE-2024-24791", "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", ReasonExpect, ""},
	{"expect anything", "", "GET / HTTP/1.1\r\nHost: a\r\nExpect: ;\r\n\r\n", ReasonExpect, ""},

	// Line ends.
	{"bare LF after the request line", "RFC 9112, 2.2", "GET / HTTP/1.1\nHost: a\r\n\r\n", ReasonLineEnd, ""},
	{"bare LF after a field", "CVE-2019-16785; CVE-2022-32214", "GET / HTTP/1.1\r\nHost: a\nTransfer-Encoding: chunked\r\n\r\n", ReasonLineEnd, ""},
	{"bare LF for the empty line", "RFC 9112, 2.2", "GET / HTTP/1.1\r\nHost: a\r\n\nX: y\r\n\r\n", ReasonLineEnd, ""},
	{"bare LF only", "RFC 9112, 2.2", "GET / HTTP/1.1\nHost: a\n\n", ReasonLineEnd, ""},
	{"LF CR", "", "GET / HTTP/1.1\n\rHost: a\n\r\n\r", ReasonLineEnd, ""},
	{"bare CR in a value", "RFC 9112, 2.2; CVE-2023-30589", "GET / HTTP/1.1\r\nHost: a\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n", ReasonLineEnd, ""},
	{"bare CR in a name", "", "GET / HTTP/1.1\r\nHost: a\r\nX\r: y\r\n\r\n", ReasonLineEnd, ""},
	{"bare CR before a field", "", "GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n", ReasonLineEnd, ""},
	{"two CR", "", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", ReasonLineEnd, ""},
	{"two CR for the empty line", "", "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n", ReasonLineEnd, ""},
	{"bare CR in the request line", "", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", ReasonLineEnd, ""},
	{"bare CR after the version", "", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", ReasonLineEnd, ""},
	{"empty line first", "RFC 9112, 2.2", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonLineEnd, ""},
	{"LF first", "", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonLineEnd, ""},
	{"folded value", "RFC 9112, 5.2", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", ReasonFolding, ""},
	{"folded by a tab", "RFC 9112, 5.2", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tz\r\n\r\n", ReasonFolding, ""},
	{"space before the first field", "RFC 9112, 2.2; CVE-2020-7238", "GET / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n", ReasonFolding, ""},
	{"line of blanks", "", "GET / HTTP/1.1\r\nHost: a\r\n \r\nX: y\r\n\r\n", ReasonFolding, ""},

	// Field lines.
	{"NUL in a name", "", "GET / HTTP/1.1\r\nHost: a\r\nX\x00Y: z\r\n\r\n", ReasonFieldName, ""},
	{"NUL in a value", "RFC 9110, 5.5", "GET / HTTP/1.1\r\nHost: a\r\nX: y\x00z\r\n\r\n", ReasonFieldValue, ""},
	{"DEL in a value", "", "GET / HTTP/1.1\r\nHost: a\r\nX: y\x7f\r\n\r\n", ReasonFieldValue, ""},
	{"escape in a value", "", "GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[2J\r\n\r\n", ReasonFieldValue, ""},
	{"tab in a value", "RFC 9110, 5.5", "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: x\ty\r\n\r\n", 0, `GET / 1.1 keep Host="a" User-Agent="x\ty"`},
	{"high bytes in a value", "RFC 9110, 5.5", "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: \xff\xc3\xa4\x80\r\n\r\n", 0, `GET / 1.1 keep Host="a" User-Agent="\xffä\x80"`},
	{"high bytes in a name", "", "GET / HTTP/1.1\r\nHost: a\r\nX\xc3\xa4: y\r\n\r\n", ReasonFieldName, ""},
	{"no colon", "CVE-2019-20444", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\r\n\r\n", ReasonFieldName, ""},
	{"no name", "CVE-2023-25725", "GET / HTTP/1.1\r\nHost: a\r\n: y\r\nTransfer-Encoding: chunked\r\n\r\n", ReasonFieldName, ""},
	{"colon first", "", "GET / HTTP/1.1\r\n:method: GET\r\nHost: a\r\n\r\n", ReasonFieldName, ""},
	{"space in a name", "", "GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", ReasonFieldName, ""},
	{"name in quotes", "", "GET / HTTP/1.1\r\n\"Host\": a\r\n\r\n", ReasonFieldName, ""},
	{"all the bytes of a token", "RFC 9110, 5.6.2", "GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~09azAZ: y\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"name of 270 bytes", "CVE-2021-40346", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length0" + strings.Repeat("a", 255) + ":\r\nX: 1\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"name of 17 bytes that is nearly transfer-encoding", "", "GET / HTTP/1.1\r\nHost: a\r\nTransfer.Encoding: x\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"white space around a value", "RFC 9110, 5.5", "GET / HTTP/1.1\r\nHost: \t a \t \r\nOrigin:\thttp://a\t\r\n\r\n", 0, `GET / 1.1 keep Host="a" Origin="http://a"`},
	{"no white space", "", "GET / HTTP/1.1\r\nHost:a\r\nOrigin:b\r\n\r\n", 0, `GET / 1.1 keep Host="a" Origin="b"`},
	{"empty value", "", "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \r\nUser-Agent:\r\n\r\n", 0, `GET / 1.1 keep Host="a" If-None-Match="" User-Agent=""`},
	{"colons in a value", "", "GET / HTTP/1.1\r\nHost: a\r\nReferer: ::x\r\n\r\n", 0, `GET / 1.1 keep Host="a" Referer="::x"`},
	{"function in a value", "CVE-2014-6271", "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: () { :; }; x\r\n\r\n", 0, `GET / 1.1 keep Host="a" User-Agent="() { :; }; x"`},
	{"look-up in a value", "CVE-2021-44228", "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: ${jndi:ldap://x/y}\r\n\r\n", 0, `GET / 1.1 keep Host="a" User-Agent="${jndi:ldap://x/y}"`},
	{"proxy", "CVE-2016-5385", "GET / HTTP/1.1\r\nHost: a\r\nProxy: http://b\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"many ranges", "CVE-2011-3192", "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-" + strings.Repeat(",5-0", 500) + "\r\n\r\n", 0, `GET / 1.1 keep Host="a" ranged`},
	{"two ranges", "", "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n", ReasonRepeated, ""},
	{"trailer without a body", "RFC 9110, 6.6.2", "GET / HTTP/1.1\r\nHost: a\r\nTrailer: Content-Length\r\nTE: trailers\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"proxy-connection", "RFC 9112, C.2.2", "GET / HTTP/1.1\r\nHost: a\r\nProxy-Connection: close\r\nKeep-Alive: timeout=5\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},

	// The request line.
	{"two spaces after the method", "RFC 9112, 3; CVE-2016-8743", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"two spaces before the version", "RFC 9112, 3", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"space after the version", "RFC 9112, 3", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"space in the target", "RFC 9112, 3.2; CVE-2013-4547", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"version twice", "", "GET / HTTP/1.1 HTTP/1.0\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"tab after the method", "RFC 9112, 3", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"tab before the version", "RFC 9112, 3", "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"tab after the version", "", "GET / HTTP/1.1\t\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"form feed before the version", "", "GET /\fHTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"space before the method", "", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"lower-case method", "RFC 9110, 9.1", "get / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonMethod, ""},
	{"mixed-case method", "RFC 9110, 9.1", "Head / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonMethod, ""},
	{"longer method", "", "GETS / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonMethod, ""},
	{"POST", "", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", ReasonMethod, ""},
	{"OPTIONS of the server", "RFC 9112, 3.2.4", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"preflight", "Fetch, 4.8", "OPTIONS /a HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\nAccess-control-request-METHOD: GET\r\n\r\n", 0, `OPTIONS /a 1.1 keep Host="a" Origin="http://b" Access-Control-Request-Method="GET"`},
	{"two preflights in one", "", "OPTIONS /a HTTP/1.1\r\nHost: a\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Method: PUT\r\n\r\n", ReasonRepeated, ""},
	{"OPTION", "", "OPTION / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonSpace, ""},
	{"CONNECT", "RFC 9112, 3.2.3", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", ReasonMethod, ""},
	{"preface of HTTP/2", "RFC 9113, 3.4", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ReasonMethod, ""},
	{"TLS", "", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ReasonMethod, ""},
	{"PROXY protocol", "", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonMethod, ""},
	{"HTTP/0.9", "CVE-2017-7656", "GET /\r\n", ReasonVersion, ""},
	{"HTTP/0.9 with a space", "", "GET / \r\n", ReasonVersion, ""},
	{"HTTP/0.9 by name", "CVE-2017-7656", "GET / HTTP/0.9\r\n\r\n", ReasonVersion, ""},
	{"HTTP/1.10", "RFC 9112, 2.3", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"HTTP/01.1", "RFC 9112, 2.3", "GET / HTTP/01.1\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"HTTP/1.2", "RFC 9110, 2.5", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"HTTP/2.0", "", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"HTTP/1", "", "GET / HTTP/1\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"http/1.1", "RFC 9112, 2.3", "GET / http/1.1\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"HTTP/1,1", "", "GET / HTTP/1,1\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"ICY", "", "GET / ICY\r\nHost: a\r\n\r\n", ReasonVersion, ""},
	{"no target", "", "GET HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"method alone", "", "GET \r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"absolute form", "RFC 9112, 3.2.2", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"asterisk form", "RFC 9112, 3.2.4", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"authority form", "RFC 9112, 3.2.3", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"no slash first", "", "GET @b/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"query alone", "", "GET ?a HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"fragment", "CVE-2023-45539", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"fragment after the query", "", "GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"NUL in the target", "", "GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"DEL in the target", "", "GET /a\x7fb HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"high bytes in the target", "RFC 3986, 2", "GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"high bytes in the query", "RFC 3986, 2", "GET /?\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"percent sign alone in the path", "RFC 3986, 2.1", "GET /100% HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"percent sign and no digits", "RFC 3986, 2.1", "GET /%u0041 HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"percent sign and one digit", "RFC 3986, 2.1", "GET /%4?a HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, ""},
	{"percent sign in the query", "CVE-2022-2880", "GET /?q=100%&%zz;a=b HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET /?q=100%&%zz;a=b 1.1 keep Host="a"`},
	{"encoded NUL", "", "GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET /a%00b 1.1 keep Host="a"`},
	{"encoded line end", "", "GET /a%0d%0aHost:b HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET /a%0d%0aHost:b 1.1 keep Host="a"`},
	{"encoded dots", "CVE-2021-41773", "GET /x/.%2e/%2E%2e/etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET /x/.%2e/%2E%2e/etc/passwd 1.1 keep Host="a"`},
	{"dots and a semicolon", "CVE-2020-5902", "GET /x/..;/y HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET /x/..;/y 1.1 keep Host="a"`},
	{"two slashes", "RFC 3986, 3.3", "GET //b/c HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET //b/c 1.1 keep Host="a"`},
	{"three slashes", "", "GET ///b/c HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET ///b/c 1.1 keep Host="a"`},
	{"absolute form behind a slash", "", "GET /http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET /http://b/ 1.1 keep Host="a"`},
	{"two question marks", "", "GET /a??b?c HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET /a??b?c 1.1 keep Host="a"`},
	{"bytes that URIs do not have", "", "GET /\"<>[]\\^`{|}?\"<>[]\\^`{|} HTTP/1.1\r\nHost: a\r\n\r\n", 0, "GET /\"<>[]\\^`{|}?\"<>[]\\^`{|} 1.1 keep Host=\"a\""},

	// The host.
	{"no host", "RFC 9112, 3.2", "GET / HTTP/1.1\r\nX: y\r\n\r\n", ReasonHost, ""},
	{"no host and no field", "RFC 9112, 3.2", "GET / HTTP/1.1\r\n\r\n", ReasonHost, ""},
	{"two hosts", "RFC 9112, 3.2", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", ReasonHost, ""},
	{"one host twice", "RFC 9112, 3.2", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", ReasonHost, ""},
	{"two hosts in HTTP/1.0", "RFC 9112, 3.2", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", ReasonHost, ""},
	{"empty host", "RFC 9112, 3.2", "GET / HTTP/1.1\r\nHost:\r\n\r\n", ReasonHost, ""},
	{"user information", "RFC 9110, 4.2.4", "GET / HTTP/1.1\r\nHost: u:p@a\r\n\r\n", ReasonHost, ""},
	{"space in the host", "", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", ReasonHost, ""},
	{"list of hosts", "", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", ReasonHost, ""},
	{"comma in the host", "", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", ReasonHost, ""},
	{"slash in the host", "", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", ReasonHost, ""},
	{"host encoded", "", "GET / HTTP/1.1\r\nHost: %61\r\n\r\n", ReasonHost, ""},
	{"high bytes in the host", "", "GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", ReasonHost, ""},
	{"port without digits", "", "GET / HTTP/1.1\r\nHost: a:\r\n\r\n", ReasonHost, ""},
	{"port of letters", "", "GET / HTTP/1.1\r\nHost: a:http\r\n\r\n", ReasonHost, ""},
	{"port of six digits", "", "GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n", ReasonHost, ""},
	{"two ports", "", "GET / HTTP/1.1\r\nHost: a:80:81\r\n\r\n", ReasonHost, ""},
	{"port alone", "", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", ReasonHost, ""},
	{"bracket open", "", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", ReasonHost, ""},
	{"brackets empty", "", "GET / HTTP/1.1\r\nHost: []\r\n\r\n", ReasonHost, ""},
	{"bytes after the bracket", "", "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n", ReasonHost, ""},
	{"zone in an address", "RFC 6874", "GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", ReasonHost, ""},
	{"IPv6 and port", "RFC 3986, 3.2.2", "GET / HTTP/1.1\r\nHost: [::ffff:192.0.2.1]:8080\r\n\r\n", 0, `GET / 1.1 keep Host="[::ffff:192.0.2.1]:8080"`},
	{"IPv4 and port", "", "GET / HTTP/1.1\r\nHost: 192.0.2.1:8080\r\n\r\n", 0, `GET / 1.1 keep Host="192.0.2.1:8080"`},
	{"underscore in the host", "", "GET / HTTP/1.1\r\nHost: my_service.local.\r\n\r\n", 0, `GET / 1.1 keep Host="my_service.local."`},
	{"X-Forwarded-Host", "", "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: b\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},

	// The Connection field.
	{"HTTP/1.1", "RFC 9112, 9.3", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"HTTP/1.1 close", "RFC 9112, 9.6", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 0, `GET / 1.1 close Host="a"`},
	{"HTTP/1.1 Close", "", "GET / HTTP/1.1\r\nHost: a\r\nconnection:CLOSE \r\n\r\n", 0, `GET / 1.1 close Host="a"`},
	{"HTTP/1.1 keep-alive", "", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"HTTP/1.0 without a host", "RFC 9112, 3.2", "GET / HTTP/1.0\r\n\r\n", 0, `GET / 1.0 close`},
	{"HTTP/1.0 keep-alive", "RFC 9112, C.2.2", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 0, `GET / 1.0 keep`},
	{"HTTP/1.0 close", "", "HEAD / HTTP/1.0\r\nHost: a\r\nConnection: close\r\n\r\n", 0, `HEAD / 1.0 close Host="a"`},
	{"two connection fields", "", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", ReasonRepeated, ""},
	{"close and keep-alive", "", "GET / HTTP/1.0\r\nHost: a\r\nConnection: close, keep-alive\r\n\r\n", ReasonConnection, ""},
	{"connection lists host", "RFC 9110, 7.6.1", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, Host\r\n\r\n", ReasonConnection, ""},
	{"connection lists a credential", "RFC 9110, 7.6.1", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Authorization\r\n\r\n", ReasonConnection, ""},
	{"connection empty", "", "GET / HTTP/1.1\r\nHost: a\r\nConnection:\r\n\r\n", ReasonConnection, ""},
	{"connection is nearly close", "", "GET / HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n", ReasonConnection, ""},
	{"connection TE", "RFC 9110, 10.1.4", "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n", ReasonConnection, ""},
	{"upgrade to h2c", "RFC 7540, 3.2", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"upgrade to h2c in HTTP/1.0", "", "GET / HTTP/1.0\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n", 0, `GET / 1.0 close Host="a"`},
	{"upgrade to h2c twice", "", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nUpgrade: h2c\r\n\r\n", ReasonUpgrade, ""},
	{"upgrade to h2c and close", "", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n\r\n", ReasonConnection, ""},
	{"upgrade to h2c or a websocket", "", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c, websocket\r\n\r\n", ReasonUpgrade, ""},
	{"upgrade in connection alone", "RFC 9110, 7.8", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\r\n", ReasonUpgrade, ""},
	{"upgrade to websocket", "RFC 6455", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n", ReasonConnection, ""},

	// Repeated fields.
	{"two credentials", "", "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nauthorization: y\r\n\r\n", 0, `GET / 1.1 keep Host="a" Authorization="x" repeated`},
	{"two keys", "", "GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: x\r\nX-Api-Key: y\r\n\r\n", 0, `GET / 1.1 keep Host="a" X-Api-Key="x" repeated`},
	{"a credential and a key", "", "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nX-Api-Key: y\r\n\r\n", 0, `GET / 1.1 keep Host="a" Authorization="x" X-Api-Key="y"`},
	{"two If-Match", "", "GET / HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\nIf-Match: \"y\"\r\n\r\n", ReasonRepeated, ""},
	{"two If-None-Match", "", "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\"\r\nIf-None-Match: \"y\"\r\n\r\n", ReasonRepeated, ""},
	{"two Accept-Encoding", "", "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\nAccept-Encoding: br\r\n\r\n", ReasonRepeated, ""},
	{"two origins", "", "GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nOrigin: http://b\r\n\r\n", ReasonRepeated, ""},
	{"two ids", "", "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: x\r\nX-Request-ID: y\r\n\r\n", ReasonRepeated, ""},
	{"two traces", "", "GET / HTTP/1.1\r\nHost: a\r\ntraceparent: x\r\ntraceparent: y\r\n\r\n", ReasonRepeated, ""},
	{"two agents and referers", "", "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nReferer: z\r\nUser-Agent: y\r\nReferer: w\r\n\r\n", 0, `GET / 1.1 keep Host="a" User-Agent="x" Referer="z"`},
	{"eight hops", "", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-Forwarded-For: x\r\n", 8) + "\r\n", 0, `GET / 1.1 keep Host="a"` + strings.Repeat(` X-Forwarded-For="x"`, 8)},
	{"nine hops", "", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-Forwarded-For: x\r\n", 9) + "\r\n", ReasonTooMany, ""},

	// Too many or too long fields.
	{"100 fields", "", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 99) + "\r\n", 0, `GET / 1.1 keep Host="a"`},
	{"101 fields", "", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 100) + "\r\n", ReasonTooMany, ""},
	{"field of 64 KiB", "", "GET / HTTP/1.1\r\nHost: a\r\nCookie: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", ReasonTooLarge, ""},
	{"name of 64 KiB", "", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("x", 64<<10) + ": y\r\n\r\n", ReasonTooLarge, ""},
	{"target of 64 KiB", "", "GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTooLarge, ""},
	{"spaces of 64 KiB", "", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat(" ", 64<<10) + "\r\n\r\n", ReasonTooLarge, ""},
}

func TestTricks(t *testing.T) {
	if len(tricks) < 70 {
		t.Errorf("%d rows, want at least 70", len(tricks))
	}
	reasons := map[Reason]bool{}
	for _, c := range tricks {
		reasons[c.why] = true
		h, n, v, why := scanOne(c.in)
		if c.why != NotHandedOver {
			if v != Other || why != c.why || n != 0 {
				t.Errorf("%s: %q: %d, %v, %v, want Other, %v", c.name, c.in, n, v, why, c.why)
			}
			continue
		}
		end := strings.Index(c.in, "\r\n\r\n") + 4
		if v != Done || why != NotHandedOver || n != end {
			t.Errorf("%s: %q: %d, %v, %v, want Done after %d bytes", c.name, c.in, n, v, why, end)
			continue
		}
		if got := describe(h); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		checkAgainstNetHTTP(t, []byte(c.in[:n]), h)
	}
	for r := range ReasonCount {
		if !reasons[r] {
			t.Errorf("no row is handed over for %v", r)
		}
	}
}

// The result must be the same for pieces of every length, and bytes given in earlier calls need not
// stay where they were.
func TestTricksInPieces(t *testing.T) {
	for _, c := range tricks {
		if len(c.in) > testLimit {
			c.in = c.in[:testLimit+1]
		}
		for _, step := range []int{1, 2, 3, 7, 50} {
			if step < 7 && len(c.in) > 4096 {
				continue
			}
			checkSplit(t, []byte(c.in), testLimit, func() int { return step })
		}
	}
}

// checkSplit checks that the heads in data are the same whether it is read in one go or in growing
// parts, which grow determines.
func checkSplit(t *testing.T, data []byte, limit int, grow func() int) {
	t.Helper()
	var whole, pieces Scanner
	hw, hp := dirtyHead(), dirtyHead()
	last := []byte{}
	for begin := 0; ; {
		n, v, why := whole.Scan(data[begin:], limit, hw)
		seen := begin
		m, pv, pwhy := pieces.Scan(nil, limit, hp)
		for pv == More && seen < len(data) {
			seen = min(seen+grow(), len(data))
			for i := range last {
				last[i] = '!' // simulates that the buffer of an earlier call is gone
			}
			last = bytes.Clone(data[begin:seen])
			m, pv, pwhy = pieces.Scan(last, limit, hp)
		}
		if m != n || pv != v || pwhy != why {
			t.Fatalf("%q, limit %d: at once %d, %v, %v; in pieces %d, %v, %v", data[begin:], limit, n, v, why, m, pv, pwhy)
		}
		if v != Done {
			if n != 0 || (v == Other) != (why != NotHandedOver) || v == More && len(data)-begin >= limit {
				t.Fatalf("%q, limit %d: %d, %v, %v", data[begin:], limit, n, v, why)
			}
			return
		}
		if got, want := describe(hp), describe(hw); got != want {
			t.Fatalf("%q, limit %d:\n at once %s\nin pieces %s", data[begin:], limit, want, got)
		}
		if n < 1 || n > min(limit, len(data)-begin) {
			t.Fatalf("%q, limit %d: a head of %d bytes", data[begin:], limit, n)
		}
		begin += n
	}
}

// dirtyHead returns a Head that was already used for a request with every field.
func dirtyHead() *Head {
	x := []byte("an earlier request's")
	h := &Head{
		Method: MethodHead, Minor: 1, KeepAlive: true, Ranged: true, RepeatedCredentials: true,
		Target: x, Host: x, IfMatch: x, IfNoneMatch: x, AcceptEncoding: x, Authorization: x, APIKey: x, Origin: x, RequestMethod: x,
		RequestID: x, Traceparent: x, UserAgent: x, Referer: x,
	}
	for i := range h.forwarded {
		h.forwarded[i] = x
	}
	h.Forwarded = h.forwarded[:]
	return h
}
