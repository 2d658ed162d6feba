package httpfront

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
)

// admit applies the limit of the client's address, before anything is read that
// costs more. False completes rsp.
func (s *Service) admit(req *Request, rsp *Response) bool {
	if s.config.ClientLimit == nil || req.question.admitted {
		return true
	}
	req.question.admitted = true
	wait, ok := s.config.ClientLimit.Allow(limit.ClientKey(req.Client), req.Start, 1)
	if !ok {
		s.tooMany(req, rsp, wait, "requests from this address")
	}
	return ok
}

// admitKeys counts a batch for the requests that it stands for; the first was
// counted by admit and authorize.
func (s *Service) admitKeys(req *Request, rsp *Response, keys int) bool {
	more := (keys+keysPerRequest-1)/keysPerRequest - 1
	if more <= 0 {
		return true
	}
	if s.config.ClientLimit != nil {
		if wait, ok := s.config.ClientLimit.Allow(limit.ClientKey(req.Client), req.Start, more); !ok {
			s.tooMany(req, rsp, wait, "keys from this address")
			return false
		}
	}
	if s.config.CallerLimit != nil && req.question.caller != nil {
		if wait, ok := s.config.CallerLimit.Allow(req.question.caller.ID(), req.Start, more); !ok {
			s.tooMany(req, rsp, wait, "keys with these credentials")
			return false
		}
	}
	return true
}

// Costs for the limit of the client's address, in requests, beside the request itself.
const (
	costOfCheck = 10 // of a signature that was wrong: about what it takes
	costOfLoad  = 1  // of a document that was loaded, or of ten in a batch
)

// Wrong tokens of an address that are looked at: a client that renews its token in time
// sends none.
const (
	wrongRate  = 10 // a second
	wrongBurst = 200
)

func newWrong() *limit.Limiter {
	return limit.New(limit.Config{Rate: wrongRate, Burst: wrongBurst, MaxEntries: 16 << 10})
}

// EachThrottled calls visit with every rule that refuses requests of a client who makes too
// many, or has the wrong Host, and how many it has refused.
func (s *Service) EachThrottled(visit func(rule string, n int64)) {
	visit("client", s.config.ClientLimit.Refused())
	visit("caller", s.config.CallerLimit.Refused())
	visit("signature", s.wrong.Refused())
	visit("host", s.figures.misdirected.Sum())
	if s.config.Gate != nil {
		visit("check", s.config.Gate.Stats().Crowded)
	}
}

// chargeLoads counts the documents that were loaded for the request. They have been, so the
// client is not refused because of them, but sooner the next time.
func (s *Service) chargeLoads(req *Request, answers ...cache.Answer) {
	if s.config.ClientLimit == nil && s.config.CallerLimit == nil {
		return
	}
	loaded := 0
	for _, a := range answers {
		if a.Source == cache.FromLoad {
			loaded++
		}
	}
	n := costOfLoad * ((loaded + keysPerRequest - 1) / keysPerRequest)
	s.config.ClientLimit.Charge(limit.ClientKey(req.Client), req.Start, n)
	if caller := req.question.caller; caller != nil {
		s.config.CallerLimit.Charge(caller.ID(), req.Start, n)
	}
}

// mayGuess reports whether a token of the client is looked at, and if not, when one will be.
func (s *Service) mayGuess(req *Request, client uint64) (wait time.Duration, ok bool) {
	if !req.Client.IsValid() || req.Client.IsPrivate() || req.Client.IsLoopback() {
		return 0, true // it may be a proxy that was not named, and stand for many clients; so may a unix socket
	}
	return s.wrong.Within(client, req.Start)
}

// identify finds out who asks, with the gate that there is. False: it completes rsp, or that
// takes too long for Peek.
func (s *Service) identify(ctx context.Context, req *Request, rsp *Response) (caller *access.Caller, refusal *access.Refusal, proceed bool) {
	client := limit.ClientKey(req.Client)
	credentials := access.Credentials{APIKey: req.APIKey, Authorization: req.Authorization, Duplicate: req.Repeated, Client: client}
	if req.AtOnce {
		known := true
		if caller, refusal, known = s.config.Gate.IdentifyAtOnce(credentials); !known {
			req.question.unasked = true
			return nil, nil, false
		}
		return caller, refusal, true
	}
	if wait, ok := s.mayGuess(req, client); !ok {
		s.tooMany(req, rsp, wait, "wrong tokens from this address")
		return nil, nil, false
	}
	if caller, refusal = s.config.Gate.Identify(ctx, credentials); refusal != nil && refusal.Forged {
		s.wrong.Charge(client, req.Start, 1)
		s.config.ClientLimit.Charge(client, req.Start, costOfCheck)
	}
	return caller, refusal, true
}

// certificate returns the certificate of the connection, nil if there is none or it has expired
// since the handshake.
func (req *Request) certificate() *access.Certificate {
	if c := req.Certificate; c != nil && c.Left(req.began) > 0 {
		return c
	}
	return nil
}

// authorize finds out who asks, whether they may read the resource, and whether they
// ask too often. False completes rsp.
func (s *Service) authorize(ctx context.Context, req *Request, rsp *Response, v *served) bool {
	if v.Access == nil && s.config.CallerLimit == nil {
		return true
	}
	certificate := req.certificate()
	var caller *access.Caller
	if s.config.Gate != nil {
		var refusal *access.Refusal
		var proceed bool
		if caller, refusal, proceed = s.identify(ctx, req, rsp); !proceed {
			return false
		}
		// Credentials that are no good are none where none are needed.
		if refusal != nil && v.Access != nil {
			s.loginFailed(req, refusal)
			s.refuse(rsp, refusal)
			return false
		}
	}
	caller, refusal := v.Access.Admit(caller, certificate)
	if caller != nil {
		rsp.Caller = caller.Name()
		req.question.caller = caller
	}
	if refusal != nil {
		s.refuse(rsp, refusal)
		return false
	}
	if s.config.CallerLimit != nil && caller != nil {
		if wait, ok := s.config.CallerLimit.Allow(caller.ID(), req.Start, 1); !ok {
			s.tooMany(req, rsp, wait, "requests with these credentials")
			return false
		}
	}
	return true
}

// loginFailed tells of credentials that are no good, not of those that could not be looked at.
func (s *Service) loginFailed(req *Request, refusal *access.Refusal) {
	if s.config.LoginFailed == nil || refusal.Status != http.StatusUnauthorized && refusal.Status != http.StatusBadRequest {
		return
	}
	rule := "token"
	if req.Authorization == "" || strings.HasPrefix(refusal.Challenge, "ApiKey") {
		rule = "key"
	}
	s.config.LoginFailed(req.Client, rule, refusal.Detail)
}

func (s *Service) refuse(rsp *Response, refusal *access.Refusal) {
	s.problem(rsp, refusal.Status, refusal.Detail)
	if refusal.Status == http.StatusServiceUnavailable {
		rsp.RetryAfter = retrySoon
	}
	if refusal.Challenge != "" {
		rsp.Challenge = []string{refusal.Challenge}
	}
}

func (s *Service) tooMany(req *Request, rsp *Response, wait time.Duration, what string) {
	s.warnThrottled(req, rsp, what)
	if wait == limit.Never {
		s.problem(rsp, http.StatusBadRequest, "these are more "+what+" than are ever let through at once: ask for fewer")
		return
	}
	s.problem(rsp, http.StatusTooManyRequests, "too many "+what)
	seconds := int64((wait + time.Second - 1) / time.Second)
	rsp.RetryAfter = []string{strconv.FormatInt(max(seconds, 1), 10)}
}
