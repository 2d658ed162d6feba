package access

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// FuzzIdentify: no credentials make Identify panic or echo them, and no caller is
// admitted without a key or a signature.
func FuzzIdentify(f *testing.F) {
	g, _ := newGate(f, nil)
	payload := `{"iss":"https://issuer.example","aud":"slipstream","exp":1e11}`
	good := sign(f, jose.HS256, octKey, "oct", payload)
	for _, s := range []string{
		good, good[:len(good)-3], sign(f, jose.RS256, rsaKey(), "", payload), sign(f, jose.ES256, ecKey(), "ec", payload),
		forge(`{"alg":"none"}`, payload, nil), forge(`{"alg":"HS256","crit":["x"]}`, payload, octKey), "a.b.c", "a.b.c.d.e", "",
	} {
		f.Add("", "Bearer "+s, false)
	}
	f.Add(webKey, "", false)
	f.Add("x", "Basic eDp5", true)
	f.Fuzz(func(t *testing.T, key, authorization string, duplicate bool) {
		c := Credentials{APIKey: key, Authorization: authorization, Duplicate: duplicate}
		for range 2 { // checked, and from the table
			caller, refusal := g.Identify(context.Background(), c)
			switch {
			case refusal != nil:
				checkChallenge(t, refusal)
				if caller != nil || refusal.Status != 400 && refusal.Status != 401 {
					t.Errorf("got %v, %+v", caller, refusal)
				}
				for _, secret := range []string{key, strings.TrimPrefix(authorization, "Bearer ")} {
					if len(secret) > 40 && strings.Contains(refusal.Detail+refusal.Challenge, secret) {
						t.Errorf("%q is echoed", secret)
					}
				}
			case caller == nil:
				if key != "" || authorization != "" || duplicate {
					t.Errorf("%+v are nobody's", c)
				}
			case caller.ID() == 0 || key != "" && key != webKey || key == "" && authorization == "":
				t.Errorf("%+v are of %s", c, caller.Name())
			}
		}
	})
}

// FuzzClaims: the issuer chooses what it signs, but no payload and no header breaks
// anything, and what is kept is bounded.
func FuzzClaims(f *testing.F) {
	g, _ := newGate(f, func(c *Config) { c.Issuer, c.Audience = "", "" })
	f.Add(`{"alg":"HS256","kid":"oct"}`, `{"exp":99999999999,"sub":"alice","scope":"a b","x":[1,"a",{}],"y":null}`)
	f.Add(`{"alg":"HS512"}`, `{"exp":"1","exp":1}`)
	f.Add(`{"alg":"HS256","crit":[]}`, `[[[[`)
	f.Add(`{"alg":"RS256","jwk":{}}`, `{"exp":1e400,"nbf":-1}`)
	f.Fuzz(func(t *testing.T, header, payload string) {
		caller, refusal := g.Identify(context.Background(), withToken(forge(header, payload, octKey)))
		if refusal != nil {
			checkChallenge(t, refusal)
			return
		}
		values := 0
		for name, list := range caller.claims {
			values += len(list)
			for _, v := range append(list, name) {
				if len(v) > maxValue {
					t.Errorf("a claim of %d bytes was kept", len(v))
				}
			}
		}
		if len(caller.claims) > maxClaims || values > maxValues || len(caller.Name()) > maxName+4 {
			t.Errorf("%d claims, %d values, name %q", len(caller.claims), values, caller.Name())
		}
	})
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("# x\nweb sha256:" + strings.Repeat("0a", 32) + " # y\n"))
	f.Add([]byte("web slk_x\r\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := parseKeys("keys.txt", data)
		lines := 1 + strings.Count(string(data), "\n")
		if e, ok := errors.AsType[*FileError](err); err != nil && (!ok || e.Message == "" || e.Line > lines) {
			t.Fatalf("%T %v in %d lines", err, err, lines)
		}
		if err == nil && len(set.byHash) > lines {
			t.Errorf("%d keys out of %d lines", len(set.byHash), lines)
		}
	})
}

func FuzzJWKS(f *testing.F) {
	f.Add(keySetJSON(f, issuerKeys()...))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AA"},{"kty":"OKP"},{"kty":"RSA","e":"AQAB","n":"AA","d":"AA"}]}`))
	f.Add([]byte("{\n\"keys\":\n[{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := parseJWKS("set.json", data, nil)
		lines := 1 + strings.Count(string(data), "\n")
		if e, ok := errors.AsType[*FileError](err); err != nil && (!ok || e.Message == "" || e.Line > lines) {
			t.Fatalf("%T %v in %d lines", err, err, lines)
		}
		for _, k := range keys {
			if err := k.strong(); err != nil || len(k.algorithms) == 0 {
				t.Errorf("a weak (%v) or useless key was accepted", err)
			}
			for _, a := range k.algorithms {
				if !a.fits(k.key) {
					t.Errorf("%T for %s", k.key, a.name)
				}
			}
		}
	})
}
