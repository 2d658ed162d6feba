package access

import (
	"net/http"
	"strconv"
	"time"
)

// Refusal is why a request is not answered. It is shared: do not change it.
type Refusal struct {
	// Status is 401, 403 or 400.
	Status int
	// Detail is for the client. It holds no bytes that the client sent.
	Detail string
	// Challenge is the value of WWW-Authenticate, "" for none.
	Challenge string
}

// Challenges without an error: what could be sent. ApiKey is not a registered
// scheme, but a 401 must have a challenge (RFC 9110, section 15.5.2).
const (
	challengeBearer = `Bearer realm="slipstream"`
	challengeKey    = `ApiKey realm="slipstream"`
)

// Refusals that need no details of the credentials.
var (
	refusedNobody      = &Refusal{http.StatusUnauthorized, "credentials are missing; expected the field X-API-Key, or Authorization: Bearer and a token", challengeBearer + ", " + challengeKey}
	refusedNobodyToken = &Refusal{http.StatusUnauthorized, "credentials are missing; expected Authorization: Bearer and a token", challengeBearer}
	refusedNobodyKey   = &Refusal{http.StatusUnauthorized, "credentials are missing; expected the field X-API-Key", challengeKey}
	refusedEveryone    = &Refusal{http.StatusForbidden, "nobody may read this", ""}
	refusedKeyMayNot   = &Refusal{http.StatusForbidden, "the API key is valid, but may not read this", ""}
	refusedTokenMayNot = insufficient("the token is valid, but tokens may not read this")
	refusedScope       = insufficient("the token is valid, but lacks a claim or scope that is needed to read this")

	refusedDuplicate  = malformed("the field X-API-Key or Authorization stands there more than once")
	refusedBearer     = malformed("Authorization: Bearer must be followed by one token and nothing else")
	refusedScheme     = &Refusal{http.StatusUnauthorized, "the authentication scheme is not known here; expected Authorization: Bearer and a token", challengeBearer}
	refusedNoTokens   = &Refusal{http.StatusUnauthorized, "tokens are not taken here; expected the field X-API-Key without the field Authorization", challengeKey}
	refusedNoKeys     = &Refusal{http.StatusUnauthorized, "API keys are not taken here; expected Authorization: Bearer and a token", challengeBearer}
	refusedKey        = &Refusal{http.StatusUnauthorized, "the API key is not known", challengeKey}
	refusedLongKey    = &Refusal{http.StatusUnauthorized, "the API key is longer than " + strconv.Itoa(maxKey) + " bytes", challengeKey}
	refusedLongToken  = invalid("the token is longer than 8 KiB")
	refusedEncrypted  = invalid("the token is encrypted; expected a signed one")
	refusedParts      = invalid("the token does not consist of three parts in base64url with a dot between them")
	refusedHeader     = invalid("the header of the token is not a JSON object of strings, numbers and booleans without repeated members, of at most 2 KiB")
	refusedCritical   = invalid("the token asks for extensions (crit, b64) that are not known here")
	refusedOwnKey     = invalid("the token brings a key of its own (jwk, x5c); expected the kid of a key that is known here")
	refusedNested     = invalid("the token holds another token; expected claims")
	refusedUnsigned   = invalid("the token is not signed")
	refusedAlgorithm  = invalid("the signature algorithm of the token is not allowed here")
	refusedUnknown    = invalid("the token is signed with a key that is not known here, or not for this algorithm")
	refusedSignature  = invalid("the signature of the token is wrong")
	refusedPayload    = invalid("the payload of the token is not a JSON object without repeated members")
	refusedManyClaims = invalid("the token has more than 64 claims or more than 1024 values")
	refusedNoExpiry   = invalid("the token has no time of expiry (exp)")
	refusedTime       = invalid("a time of the token (exp, nbf or iat) is not a number of seconds between the years 1970 and 9999")
	refusedSubject    = invalid("the subject or issuer of the token (sub, iss) is not a string of at most 1 KiB")
	refusedIssuer     = invalid("the token is from another issuer than is trusted here")
	refusedAudience   = invalid("the token is for another audience")
)

// invalid is a refused token (RFC 6750, section 3.1). The detail must do without
// quotes, backslashes and what is not ASCII: it stands in a quoted string.
func invalid(detail string) *Refusal {
	return bearerError(http.StatusUnauthorized, "invalid_token", detail)
}

func malformed(detail string) *Refusal {
	return bearerError(http.StatusBadRequest, "invalid_request", detail)
}

func insufficient(detail string) *Refusal {
	return bearerError(http.StatusForbidden, "insufficient_scope", detail)
}

func bearerError(status int, code, detail string) *Refusal {
	return &Refusal{status, detail, challengeBearer + `, error="` + code + `", error_description="` + detail + `"`}
}

// invalidTime is a refusal that tells a time of the token. The time is written by
// us: nothing of the token's text is.
func invalidTime(what string, d numericDate) *Refusal {
	return invalid(what + time.Unix(int64(d.seconds), 0).UTC().Format(time.RFC3339))
}
