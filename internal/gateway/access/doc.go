// Package access identifies the callers of requests and decides what they may
// read.
//
// A [Gate] knows API keys (a file of names and hashes) and JSON Web Tokens (a
// file with the issuer's key set, or its address). [Gate.Identify] turns the credentials of a
// request into a [Caller], and a [Rule] says which callers a resource admits. Refusals are
// values that are ready to be sent: status, a sentence for the client, and the challenge.
//
// # API keys
//
// A key is sent in the field X-API-Key. The file holds SHA-256 hashes, one "name sha256:<64 hex
// digits>" per line; # begins a comment. A name may appear twice, so that a new key can be issued
// before the old one is removed. A third word "until:2027-06-30" or "until:2027-06-30T18:00:00Z"
// says when the key expires: at the end of that day in UTC, or at that time. Expiry is checked at
// each use. Keys from [NewKey] have 256 random bits, about which a hash reveals nothing: the file
// may be readable by everyone. Only users that can write to it must be trusted. That does not hold
// for keys that people have made up.
//
// A presented key is hashed, and its hash is looked up in a map. The time that
// this takes only depends on bytes of the hash. To learn a stored hash byte by
// byte, an attacker would need keys with chosen hash prefixes, and a known hash
// does not reveal a key. So a constant-time comparison is not needed.
//
// # Tokens
//
// A token is sent as "Authorization: Bearer" (RFC 6750), in compact form, signed
// (RFC 7515, RFC 7519). Only a narrow subset is accepted:
//
//   - The algorithm is one of HS, RS, PS or ES with 256, 384 or 512 bits, or EdDSA with Ed25519;
//     "none" is never accepted. A key of the set is used only with algorithms of its own kind and
//     size, and only with its own "alg" if it names one. The text of an RSA key is never the secret
//     of an HMAC.
//   - kid only selects a key, by comparison. A token without kid is accepted only if one key of the
//     set fits its algorithm; of keys with the same kid at most 8 are tried. Nothing is fetched
//     from a URL in a token: jku and x5u are not read, and jwk and x5c are refused. If the key set
//     is fetched, an unknown kid causes another fetch.
//   - crit, b64, nested and encrypted tokens are refused. typ is ignored.
//   - aud must contain the audience of the gateway; package config requires that waiving this is
//     explicit.
//   - exp is required, because otherwise the cache of a gateway could never drop a token. nbf and
//     iat must have been reached. The leeway applies to all three.
//   - A member that appears twice in the header or payload is an error; neither value is used.
//
// At most 64 claims with 1,024 values are kept of a token: strings up to 1 KiB,
// arrays of such strings, numbers and Booleans. Objects, null and longer values
// are dropped, so no rule can require them.
//
// # Certificates
//
// A client may have proven in a TLS handshake that it owns a certificate. Its names (SAN) are read
// once per connection: [NewCertificate]. A [Rule] names DNS names, URIs, email and IP addresses, and
// the form of a name determines its kind, so that no name equals one of another kind. They are
// compared in full; there are no wildcards, and the common name is not read.
//
// # Together
//
// A certificate can be combined with credentials: see [Rule.Admit]. Wrong credentials are refused,
// valid ones take precedence, and the certificate is used if they do not match the rule.
//
// A request may carry a key and a token. Both must be valid, and the token
// counts: it names the person, whereas the key usually names only the program. A
// field that appears twice, or holds more than one token, is refused with 400.
//
// # Cost
//
// Tokens that were seen recently are looked up in a table of bounded size, and bad ones,
// for 10 seconds, in a separate table: a flood of bad tokens does not evict good ones,
// and the same bad token does not cost a check each time. Different bad tokens do cost
// one signature check each. At most half of GOMAXPROCS such checks run concurrently, so
// that a flood takes at most half of the CPU from known callers. Other tokens wait, each
// client in turn, until their request ends; beyond 1,024 waiting tokens, the client with
// the most is refused. The frontends charge a client for signatures that were wrong.
package access
