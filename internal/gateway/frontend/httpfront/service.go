package httpfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/measure"
)

// ServiceConfig configures a [Service]. The zero value serves documents to
// anyone, uncompressed, without limits.
type ServiceConfig struct {
	frontend.RequestConfig

	// Compression are the content codings offered, "zstd" and "gzip", in order
	// of preference.
	Compression []string
	// MaxBatch is the maximum number of keys in one request. If zero, it defaults to
	// 1,000.
	MaxBatch int
	CORS     CORS
	// Hosts says where Host is compared with names. The zero value compares nothing.
	Hosts Hosts
	// OpenAPI returns the description served at /openapi.json, of the resources that may
	// reports true for, by their index in the list, or nil while there is none. It is called
	// once per request and must be fast. If nil, no description is served.
	OpenAPI func(may func(i int) bool) []byte
	// Spans receives answered requests that are to be traced. If nil, none are.
	Spans Spans
	// Log receives failures and slow requests. If nil, nothing is logged.
	Log *slog.Logger
}

// Service answers requests. All methods are safe for concurrent use.
type Service struct {
	// Immutable after NewService.
	cache     *cache.Cache
	resources frontend.Resources[*served]
	protected bool // some resource has an access rule
	certified bool // and some rule names certificates
	// The rules for Host, by the address of the listener; nil if there is none.
	hostsAtLoopback, hostsElsewhere *hostRule
	config                          ServiceConfig
	log                             *slog.Logger
	compressor                      *compressor
	cors                            *corsPolicy // if nil, no page of another origin may read
	vary                            []string
	loading                         *batchRoom     // bytes of batches that load
	wrong                           *limit.Limiter // wrong tokens of an address; shared by successive services

	// described are the descriptions that were sent last. Atomic: written and read
	// by all goroutines that send one.
	described atomic.Pointer[[]describedText]

	figures   *figures
	logged    *measure.Ration
	slow      *measure.Ration
	throttled *measure.Ration
	strangers *measure.Ration // lines about wrong names in Host
}

// served is a resource as the service keeps it.
type served struct {
	frontend.Served

	// Immutable after NewService.
	service *Service
	// own are the fields that the configuration sets for its documents.
	own ownFields
	// hitFields are the lines of a hit in identity that do not depend on its document.
	hitFields string
	// missing is the Cache-Control for keys without a row.
	missing []string

	// size is the mean length of documents in batches, 0 before the first. Atomic:
	// written and read by batches that load.
	size atomic.Int64
}

// question is what a request asks for, once it has been parsed and admitted.
type question struct {
	answered bool // rsp is complete: the cache is not needed
	admitted bool // admitted by the client's limit
	unasked  bool // the caller is not identified yet: that takes too long for Peek
	of       *served
	columns  *[]resource.KeyColumn // with which the key was parsed
	caller   *access.Caller        // nil if unknown
	key      cache.Key
	many     int                    // the number of keys of a batch; 0 if it is not one
	keys     []cache.Key            // of a batch; nil if they must be parsed again
	answers  []cache.Answer         // of a batch, as many as keys
	found    bool                   // Peek has all answers, but compressing them takes too long for it
	again    *recent.Entry[*served] // the recent answer for the same target, which is still valid
}

// NewService returns a service for resources in the order of the cache's.
func NewService(c *cache.Cache, resources []frontend.Resource, config ServiceConfig) (*Service, error) {
	s := &Service{cache: c, loading: newBatchRoom(), wrong: newWrong(), figures: &figures{Answers: frontend.NewAnswers()},
		logged: new(measure.Ration), slow: new(measure.Ration), throttled: new(measure.Ration), strangers: new(measure.Ration)}
	if err := s.configure(frontend.Numbered(resources), config); err != nil {
		return nil, err
	}
	return s, nil
}

// Next returns a service for other resources, or for the same ones with other rules, that
// continues the counters of this one. Both may answer concurrently: a request is answered by the
// service with which it began.
func (s *Service) Next(resources []frontend.Resource, config ServiceConfig) (*Service, error) {
	next := &Service{cache: s.cache, loading: s.loading, wrong: s.wrong, figures: s.figures, logged: s.logged, slow: s.slow, throttled: s.throttled, strangers: s.strangers}
	if slices.Equal(config.Compression, s.config.Compression) {
		next.compressor = s.compressor // it has the slots of the processors and memory
	}
	if err := next.configure(resources, config); err != nil {
		return nil, err
	}
	return next, nil
}

// configure completes a new service.
func (s *Service) configure(resources []frontend.Resource, config ServiceConfig) error {
	if config.MaxBatch <= 0 {
		config.MaxBatch = 1000
	}
	config.RequestConfig = config.RequestConfig.WithDefaults()
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	var offered []coding
	for _, name := range config.Compression {
		switch name {
		case "gzip":
			offered = append(offered, gzipped)
		case "zstd":
			offered = append(offered, zstd)
		default:
			return errors.New("http: there is no content coding " + strconv.Quote(name) + "; expected gzip or zstd")
		}
	}
	s.config, s.log, s.cors = config, config.Log, newCORSPolicy(config.CORS, resources)
	if s.compressor == nil {
		s.compressor = newCompressor(offered)
	}
	s.hostsAtLoopback, s.hostsElsewhere = hostRules(config.Hosts)
	s.vary = varyOf(len(offered) > 0, s.cors.varies())
	for _, r := range resources {
		v := &served{service: s}
		v.dress(r)
		v.hitFields = string(hitFields(&v.own, s.vary))
		if err := s.resources.Add(v, r); err != nil {
			return fmt.Errorf("http: resource %s: %w", r.Name, err)
		}
		s.protected = s.protected || r.Access != nil
		s.certified = s.certified || r.Access != nil && len(r.Access.Certificates) > 0
	}
	return nil
}

// dress makes the header fields of the documents of a resource.
func (v *served) dress(r frontend.Resource) {
	cacheControl := noCache
	if r.Access != nil {
		cacheControl = privateNoCache
	}
	own := []line{{fieldCacheControl, cacheControl}}
	for _, f := range r.Fields {
		if f.Name == fieldCacheControl.sent {
			own[0].values = []string{f.Value}
		} else {
			own = append(own, line{named(f.Name), []string{f.Value}})
		}
	}
	v.own = ownFields{own, string(appendLines(nil, own))}
	// A problem has no entity tag, so a client that must revalidate it before reuse could
	// never reuse it.
	v.missing = own[0].values
	if strings.Contains(v.missing[0], "no-cache") {
		v.missing = noStore
	}
}

// SetColumns sets the key columns of a resource. Until then its documents are
// answered with 503.
func (s *Service) SetColumns(id cache.ResourceID, columns []resource.KeyColumn) error {
	return s.resources.SetColumns(id, columns)
}

// Field values that never change.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
	noCache  = []string{"no-cache"}

	privateNoCache = []string{"private, no-cache"}

	allowed       = []string{"GET, HEAD, OPTIONS"}
	retrySoon     = []string{"1"}
	noRanges      = []string{"none"} // RFC 9110, section 14.3
	statusHit     = []string{"slipstream; hit"}
	statusDisk    = []string{"slipstream; hit; detail=disk"}
	statusMiss    = []string{"slipstream; fwd=uri-miss"}
	statusPartial = []string{"slipstream; fwd=partial"}
	statusStore   = []string{"slipstream; fwd=uri-miss; stored"}
	statusJoin    = []string{"slipstream; fwd=uri-miss; collapsed"}
	statusStale   = []string{"slipstream; fwd=stale"}
)

// Peek fills rsp if it can do so without waiting: for a hit or a bad request. If it
// returns false, Answer must be called with the same req. Event loops call Peek.
func (s *Service) Peek(req *Request, rsp *Response) bool {
	q := &req.question
	s.ask(atOnce, req, rsp)
	switch {
	case q.unasked:
		return false
	case q.answered:
	case q.again != nil:
		if s.repeat(req, q.again, rsp) {
			break
		}
		if a := (cache.Answer{Doc: q.again.Document()}); !s.document(atOnce, req, a, rsp) {
			s.cache.CountHits(q.of.ID, 1)
			q.answers, q.found, q.again = []cache.Answer{a}, true, nil
			return false
		}
	case q.many > 0:
		if !s.peekBatch(req, rsp) {
			return false
		}
	default:
		a, ok := s.cache.Peek(q.key, req.Start)
		if !ok {
			return false
		}
		if !s.document(atOnce, req, a, rsp) {
			q.answers, q.found = []cache.Answer{a}, true
			return false
		}
		if req.recent != nil && a.Source == cache.FromTier && !a.Doc.Missing() {
			req.recent.Remember(req.Target, q.of, q.of.ID, q.columns, a.Doc, s.headOf(a.Doc).fields)
		}
	}
	s.dress(req, rsp)
	return true
}

// Answer fills rsp after Peek could not, and loads the documents if it must. It
// returns early when ctx ends: with 504 at a deadline.
func (s *Service) Answer(ctx context.Context, req *Request, rsp *Response) {
	q := &req.question
	ctx = cache.WithClient(ctx, limit.ClientKey(req.Client))
	if q.unasked {
		q.unasked, req.AtOnce = false, false
		s.ask(ctx, req, rsp)
	}
	if q.answered {
		s.dress(req, rsp)
		return
	}
	if q.found && q.many > 0 {
		s.batch(ctx, req, rsp)
	} else if q.found {
		s.document(ctx, req, q.answers[0], rsp)
	} else if q.many > 0 {
		s.answerBatch(ctx, req, rsp)
	} else if a, err := s.cache.Get(ctx, q.key, req.Start); err != nil {
		s.failure(err, req, rsp)
	} else {
		s.chargeLoads(req, a)
		s.document(ctx, req, a, rsp)
	}
	s.dress(req, rsp)
}

// ask parses the request and admits it. It completes rsp for a bad request, and for one
// that needs no document. ctx bounds the check of a signature; it is not used if
// req.AtOnce.
func (s *Service) ask(ctx context.Context, req *Request, rsp *Response) {
	q := &req.question
	q.answered = true
	if req.WrongHost != "" {
		s.misdirected(req, rsp)
		return
	}
	if !s.admit(req, rsp) {
		return
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		s.options(req, rsp)
		return
	default:
		s.problem(rsp, http.StatusMethodNotAllowed, "documents can only be read: use GET or HEAD")
		rsp.Allow = allowed
		return
	}
	if len(req.Target) > maxBatchTarget {
		s.problem(rsp, http.StatusRequestURITooLong, "the request target is longer than "+strconv.Itoa(maxBatchTarget)+" bytes")
		return
	}
	if req.recent != nil {
		if e := req.recent.Find(s.cache, req.Target, req.Start); e != nil && e.Resource.service == s && e.Columns == e.Resource.Columns() {
			rsp.Resource = e.Resource.Name
			if s.authorize(ctx, req, rsp, e.Resource) {
				q.of, q.again, q.answered = e.Resource, e, false
			}
			return
		}
	}
	name, path, query, single := splitTarget(req.Target)
	v := s.resources.ByName[name]
	switch {
	case v == nil && name == "openapi.json" && !single && s.config.OpenAPI != nil:
		s.describe(ctx, req, rsp)
		return
	case v == nil:
		s.problem(rsp, http.StatusNotFound, "there is no such resource; the path is /{resource}/{key}")
		return
	case single && len(req.Target) > maxTarget:
		s.problem(rsp, http.StatusRequestURITooLong, "the request target is longer than "+strconv.Itoa(maxTarget)+" bytes")
		return
	}
	rsp.Resource = v.Name
	if !s.authorize(ctx, req, rsp, v) {
		return
	}
	columns := v.Columns()
	if columns == nil {
		s.problem(rsp, http.StatusServiceUnavailable, "the database has not been reached yet")
		rsp.RetryAfter = retrySoon
		return
	}
	q.of, q.columns = v, columns
	if single {
		s.askOne(req, rsp, *columns, path)
	} else {
		s.askMany(req, rsp, *columns, query)
	}
}

func (s *Service) askOne(req *Request, rsp *Response, columns []resource.KeyColumn, path string) {
	id, err := parseKey(columns, path)
	if err != nil {
		s.problem(rsp, http.StatusBadRequest, err.Error())
		return
	}
	req.question.key = cache.Key{Resource: req.question.of.ID, ID: id}
	req.question.answered = false
}

func (s *Service) askMany(req *Request, rsp *Response, columns []resource.KeyColumn, query string) {
	q := &req.question
	keys, err := parseBatch(columns, q.of.ID, query, s.config.MaxBatch)
	if err != nil {
		s.problem(rsp, http.StatusBadRequest, err.Error())
		return
	}
	if !s.admitKeys(req, rsp, len(keys)) {
		return
	}
	q.many, q.keys, q.answers, q.answered = len(keys), keys, make([]cache.Answer, len(keys)), false
}
