package httpfront

import (
	"net/http"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/gateway/access"
	"github.com/slipstream-go/slipstream/gateway/limit"
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
		s.tooMany(rsp, wait, "requests from this address")
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
			s.tooMany(rsp, wait, "keys from this address")
			return false
		}
	}
	if s.config.CallerLimit != nil && req.question.caller != nil {
		if wait, ok := s.config.CallerLimit.Allow(req.question.caller.ID(), req.Start, more); !ok {
			s.tooMany(rsp, wait, "keys with these credentials")
			return false
		}
	}
	return true
}

// authorize finds out who asks, whether they may read the resource, and whether they
// ask too often. False completes rsp.
func (s *Service) authorize(req *Request, rsp *Response, v *served) bool {
	if v.access == nil && s.config.CallerLimit == nil {
		return true
	}
	var caller *access.Caller
	if s.config.Gate != nil {
		credentials := access.Credentials{APIKey: req.APIKey, Authorization: req.Authorization, Duplicate: req.Repeated}
		var refusal *access.Refusal
		if known := true; req.AtOnce {
			if caller, refusal, known = s.config.Gate.IdentifyAtOnce(credentials); !known {
				req.question.unasked = true
				return false
			}
		} else {
			caller, refusal = s.config.Gate.Identify(credentials)
		}
		// Credentials that are no good are none where none are needed.
		if refusal != nil && v.access != nil {
			s.refuse(rsp, refusal)
			return false
		}
	}
	if caller != nil {
		rsp.Caller = caller.Name()
		req.question.caller = caller
	}
	if refusal := v.access.Allows(caller); refusal != nil {
		s.refuse(rsp, refusal)
		return false
	}
	if s.config.CallerLimit != nil && caller != nil {
		if wait, ok := s.config.CallerLimit.Allow(caller.ID(), req.Start, 1); !ok {
			s.tooMany(rsp, wait, "requests with these credentials")
			return false
		}
	}
	return true
}

func (s *Service) refuse(rsp *Response, refusal *access.Refusal) {
	s.problem(rsp, refusal.Status, refusal.Detail)
	if refusal.Challenge != "" {
		rsp.Challenge = []string{refusal.Challenge}
	}
}

func (s *Service) tooMany(rsp *Response, wait time.Duration, what string) {
	if wait == limit.Never {
		s.problem(rsp, http.StatusBadRequest, "these are more "+what+" than are ever let through at once: ask for fewer")
		return
	}
	s.problem(rsp, http.StatusTooManyRequests, "too many "+what)
	seconds := int64((wait + time.Second - 1) / time.Second)
	rsp.RetryAfter = []string{strconv.FormatInt(max(seconds, 1), 10)}
}
