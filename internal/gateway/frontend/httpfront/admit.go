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

// admit applies the limit of the client's address, before anything more expensive.
// If it returns false, it has completed rsp.
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

// admitKeys counts a batch as several requests; the first was counted by admit and
// authorize.
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

// Costs charged to the limit of the client's address, in requests, in addition to the
// request itself.
const (
	costOfCheck = 10 // of a wrong signature: about the CPU time of the check
	costOfLoad  = 1  // of a document that was loaded, or of ten in a batch
)

// Limits of the wrong tokens of an address that are checked: a client that renews its
// token in time sends none.
const (
	wrongRate  = 10 // per second
	wrongBurst = 200
)

func newWrong() *limit.Limiter {
	return limit.New(limit.Config{Rate: wrongRate, Burst: wrongBurst, MaxEntries: 16 << 10})
}

// EachThrottled calls visit with every rule that refuses requests of a client that sends too
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

// chargeLoads counts the documents that were loaded for the request. They are loaded already,
// so this request is not refused, but the client reaches its limit sooner.
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

// mayGuess reports whether a token of the client is checked, and if not, when one will be.
func (s *Service) mayGuess(req *Request, client uint64) (wait time.Duration, ok bool) {
	if !req.Client.IsValid() || req.Client.IsPrivate() || req.Client.IsLoopback() {
		return 0, true // it may be an unlisted proxy, and act for many clients; so may a unix socket
	}
	return s.wrong.Within(client, req.Start)
}

// identify identifies the caller with the current gate. If it returns false, it has completed
// rsp, or the check takes too long for Peek.
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

// certificate returns the certificate of the connection, or nil if there is none or it has expired
// since the handshake.
func (req *Request) certificate() *access.Certificate {
	if c := req.Certificate; c != nil && c.Left(req.began) > 0 {
		return c
	}
	return nil
}

// authorize identifies the caller, and checks whether it may read the resource and
// keeps to its rate limit. If it returns false, it has completed rsp.
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
		// Invalid credentials count as none where none are required.
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

// loginFailed reports invalid credentials, but not those that could not be checked.
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
		s.problem(rsp, http.StatusBadRequest, "too many "+what+" at a time: request fewer")
		return
	}
	s.problem(rsp, http.StatusTooManyRequests, "too many "+what)
	seconds := int64((wait + time.Second - 1) / time.Second)
	rsp.RetryAfter = []string{strconv.FormatInt(max(seconds, 1), 10)}
}
