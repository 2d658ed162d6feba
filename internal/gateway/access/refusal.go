package access

import (
	"net/http"
	"strconv"
	"time"
)

// Refusal is why a request is refused. It is shared: do not modify it.
type Refusal struct {
	// Status is 401, 403 or 400; 503 if too many tokens wait to be checked, and 504 if the
	// request ended before its token was checked.
	Status int
	// Detail is for the client. It contains no bytes that the client sent.
	Detail string
	// Challenge is the value of WWW-Authenticate, or "" for none.
	Challenge string
	// Forged says that a signature was checked and found wrong, which costs more than
	// any other refusal.
	Forged bool
}

// Challenges without an error: what could be sent. ApiKey is not a registered
// scheme, but a 401 must have a challenge (RFC 9110, section 15.5.2).
const (
	challengeBearer = `Bearer realm="slipstream"`
	challengeKey    = `ApiKey realm="slipstream"`
)

// Refusals that need no details of the credentials.
var (
	refusedNobody      = &Refusal{Status: http.StatusUnauthorized, Detail: "credentials are missing; expected the field X-API-Key, or Authorization: Bearer and a token", Challenge: challengeBearer + ", " + challengeKey}
	refusedNobodyToken = &Refusal{Status: http.StatusUnauthorized, Detail: "credentials are missing; expected Authorization: Bearer and a token", Challenge: challengeBearer}
	refusedNobodyKey   = &Refusal{Status: http.StatusUnauthorized, Detail: "credentials are missing; expected the field X-API-Key", Challenge: challengeKey}
	refusedEveryone    = &Refusal{Status: http.StatusForbidden, Detail: "no caller may read this", Challenge: ""}
	// There is no scheme for a challenge: a certificate is requested in the handshake.
	refusedNoCertificate     = &Refusal{Status: http.StatusForbidden, Detail: "a client certificate is required to read this, at an address that requests one", Challenge: ""}
	refusedCertificateMayNot = &Refusal{Status: http.StatusForbidden, Detail: "the certificate of the client is valid, but may not read this", Challenge: ""}

	refusedKeyMayNot   = &Refusal{Status: http.StatusForbidden, Detail: "the API key is valid, but may not read this", Challenge: ""}
	refusedTokenMayNot = insufficient("the token is valid, but tokens may not read this")
	refusedScope       = insufficient("the token is valid, but lacks a claim or scope that is required to read this")

	refusedCrowded = &Refusal{Status: http.StatusServiceUnavailable, Detail: "too many new tokens wait to be checked", Challenge: ""}
	refusedNoSet   = &Refusal{Status: http.StatusServiceUnavailable, Detail: "the keys that sign tokens are not known yet", Challenge: ""}
	refusedLate    = &Refusal{Status: http.StatusGatewayTimeout, Detail: "the token could not be checked in time", Challenge: ""}

	refusedDuplicate  = malformed("the field X-API-Key or Authorization appears more than once")
	refusedBearer     = malformed("Authorization: Bearer must be followed by one token and nothing else")
	refusedScheme     = &Refusal{Status: http.StatusUnauthorized, Detail: "the authentication scheme is not known here; expected Authorization: Bearer and a token", Challenge: challengeBearer}
	refusedNoTokens   = &Refusal{Status: http.StatusUnauthorized, Detail: "tokens are not accepted here; expected the field X-API-Key without the field Authorization", Challenge: challengeKey}
	refusedNoKeys     = &Refusal{Status: http.StatusUnauthorized, Detail: "API keys are not accepted here; expected Authorization: Bearer and a token", Challenge: challengeBearer}
	refusedKey        = &Refusal{Status: http.StatusUnauthorized, Detail: "the API key is not known", Challenge: challengeKey}
	refusedOldKey     = &Refusal{Status: http.StatusUnauthorized, Detail: "the API key has expired", Challenge: challengeKey}
	refusedLongKey    = &Refusal{Status: http.StatusUnauthorized, Detail: "the API key is longer than " + strconv.Itoa(maxKey) + " bytes", Challenge: challengeKey}
	refusedLongToken  = invalid("the token is longer than 8 KiB")
	refusedEncrypted  = invalid("the token is encrypted; expected a signed one")
	refusedParts      = invalid("the token does not consist of three parts in base64url with a dot between them")
	refusedHeader     = invalid("the header of the token is not a JSON object of strings, numbers and Booleans without repeated members, of at most 2 KiB")
	refusedCritical   = invalid("the token requires extensions (crit, b64) that are not known here")
	refusedOwnKey     = invalid("the token brings its own key (jwk, x5c); expected the kid of a key that is known here")
	refusedNested     = invalid("the token holds another token; expected claims")
	refusedUnsigned   = invalid("the token is not signed")
	refusedAlgorithm  = invalid("the signature algorithm of the token is not allowed here")
	refusedUnknown    = invalid("the token is signed with a key that is not known here, or not for this algorithm")
	refusedNoKid      = invalid("several keys are known here for the algorithm of the token, and its header has no kid that says which one signed it")
	refusedSignature  = forged("the signature of the token is wrong")
	refusedPayload    = invalid("the payload of the token is not a JSON object without repeated members")
	refusedManyClaims = invalid("the token has more than 64 claims or more than 1024 values")
	refusedNoExpiry   = invalid("the token has no time of expiry (exp)")
	refusedTime       = invalid("a time of the token (exp, nbf or iat) is not a number of seconds between the years 1970 and 9999")
	refusedSubject    = invalid("the subject or issuer of the token (sub, iss) is not a string of at most 1 KiB")
	refusedIssuer     = invalid("the token is from another issuer than is trusted here")
	refusedAudience   = invalid("the token is for another audience")
)

// invalid is a refused token (RFC 6750, section 3.1). The detail must not contain
// quotes, backslashes or characters outside of ASCII, because it becomes part of a
// quoted string.
func invalid(detail string) *Refusal {
	return bearerError(http.StatusUnauthorized, "invalid_token", detail)
}

// forged is invalid for a wrong signature.
func forged(detail string) *Refusal {
	r := invalid(detail)
	r.Forged = true
	return r
}

func malformed(detail string) *Refusal {
	return bearerError(http.StatusBadRequest, "invalid_request", detail)
}

func insufficient(detail string) *Refusal {
	return bearerError(http.StatusForbidden, "insufficient_scope", detail)
}

func bearerError(status int, code, detail string) *Refusal {
	return &Refusal{Status: status, Detail: detail, Challenge: challengeBearer + `, error="` + code + `", error_description="` + detail + `"`}
}

// invalidTime is a refusal that contains a time of the token. The time is formatted
// here, so no text of the token is included.
func invalidTime(what string, d numericDate) *Refusal {
	return invalid(what + time.Unix(int64(d.seconds), 0).UTC().Format(time.RFC3339))
}
