// Package access says who sends a request and whether they may.
//
// A [Gate] knows API keys (a file of names and hashes) and JSON Web Tokens (a
// file with the issuer's key set, or its address). [Gate.Identify] turns the credentials of a
// request into a [Caller], and a [Rule] says which callers a resource takes.
// Refusals are values that are ready to be sent: status, a sentence for the
// client, and the challenge.
//
// # API keys
//
// A key comes in the field X-API-Key. The file holds SHA-256 hashes, one
// "name sha256:<64 hex digits>" a line; # begins a comment. A name may stand
// there twice, so that a new key can be handed out before the old one goes. A third
// word "until:2027-06-30" or "until:2027-06-30T18:00:00Z" says when the key expires:
// at the end of that day in UTC, or at that time. The clock is asked at each use. Keys
// out of [NewKey] have 256 random bits, of which a hash tells nothing: the file
// may be read by everybody. Only who can write it must be trusted. That does not
// hold for keys that people made up.
//
// A presented key is hashed, and its hash is looked up in a map. The time that
// takes depends on bytes of the hash alone. Who wanted to learn a stored hash
// byte by byte would need keys with chosen hash prefixes, and a hash that is
// known gives no key. So no comparison is needed that takes constant time.
//
// # Tokens
//
// A token comes as "Authorization: Bearer" (RFC 6750), in compact form, signed
// (RFC 7515, RFC 7519). What is taken is narrow:
//
//   - The algorithm is one of HS, RS, PS or ES with 256, 384 or 512 bits, or EdDSA
//     with Ed25519, "none" never. A key of the set is used only with algorithms of its own kind and
//     size, and only with its own "alg" if it names one. The text of an RSA key
//     is never the secret of an HMAC.
//   - kid chooses the key by comparison and nothing else. A token without kid is
//     taken only if one key of the set fits its algorithm; of keys with the same
//     kid at most 8 are tried. Nothing is fetched from where a token says: jku and x5u are not
//     read, jwk and x5c refused. If the key set is fetched, an unknown kid has it fetched again.
//   - crit, b64, nested and encrypted tokens are refused. typ is ignored.
//   - aud must contain the audience of the gateway; package config has it waived in
//     words only.
//   - exp is required, because the cache of a gateway has no other way to be rid
//     of a token. nbf and iat must have been reached. The leeway counts for all
//     three.
//   - A member that stands twice in header or payload is an error, not a choice.
//
// What is kept of a token is at most 64 claims with 1,024 values: strings up to
// 1 KiB, arrays of such strings, numbers and booleans. Objects, null and longer
// values are left out, so that no rule can ask for them.
//
// # Certificates
//
// A client may have proven in a TLS handshake that a certificate is its own. Its names (SAN) are
// read once a connection: [NewCertificate]. A [Rule] names DNS names, URIs, email and IP addresses,
// and the form of a name says which it is, so that no name is equal to one of another kind. They
// are compared in full; there are no wildcards, and the common name is not read.
//
// # Together
//
// A certificate comes beside credentials: [Rule.Admit]. Wrong credentials are refused, valid ones
// lead, and the certificate is asked if they do not fit the rule.
//
// A request may carry a key and a token. Both must be valid, and the token
// counts: it names the person, the key as a rule only the program. A field that
// stands there twice, or holds more than one token, is refused with 400.
//
// # Cost
//
// Tokens that were seen lately are answered out of a table of bounded size, and
// so are bad ones, for 10 seconds and out of a table of their own: a flood of bad
// tokens neither pushes out the good ones, nor does the same bad token cost a
// check each time. Different bad tokens do cost one signature check each. At most
// half of GOMAXPROCS such checks run at once, so that a flood takes at most half of
// the CPU from callers that are known. Others wait, each client in turn, until their
// request ends; of more than 1,024 the client who waits with the most is refused. The
// frontends charge a client for signatures that were wrong.
package access
