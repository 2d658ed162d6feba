package tarantoolsim

import (
	"crypto/sha1"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

const guest = "guest"

// own answers a request like a real server.
func (r *Request) own() {
	s := r.conn.server
	if r.broken != nil {
		r.refuse(fail(iproto.CodeInvalidMessagePack, "Invalid MsgPack - packet body"))
		return
	}
	s.mu.Lock()
	denied, version, function := s.denies(r), s.data.version, s.function(r)
	s.mu.Unlock()
	if denied {
		r.refuse(fail(iproto.CodeAccessDenied, fmt.Sprintf("Access denied for user '%s': %s", guest, r.Type)))
		return
	}
	if !r.known() {
		r.refuse(fail(iproto.CodeUnknownRequestType, fmt.Sprintf("Unknown request type %d", r.code)))
		return
	}
	switch r.code {
	case box.CodePing:
		r.conn.reply(box.AppendReply(nil, r.sync, version))
	case box.CodeAuth:
		r.finish(nil, r.authenticate())
	case box.CodeID:
		r.identify()
	case box.CodeCall, box.CodeCall16, box.CodeEval:
		r.run(function)
	case box.CodeWatch, box.CodeUnwatch, box.CodeWatchOnce:
		r.watch()
	case box.CodeBegin, box.CodeCommit, box.CodeRollback:
		s.mu.Lock()
		err := r.transact()
		s.mu.Unlock()
		r.finish(nil, err)
	default:
		r.finish(r.operate())
	}
}

// run calls a function. If it is nil or returns Own, run answers like the server itself.
func (r *Request) run(function Handler) {
	var results []any
	err := Own
	if function != nil {
		results, err = function(r)
	}
	if errors.Is(err, Own) {
		results, err = r.conn.server.info(r)
	}
	switch {
	case !errors.Is(err, Own):
		r.say(results, err)
	case r.code == box.CodeEval:
		r.refuse(fmt.Errorf("tarantooltest: nothing is defined for %q", r.Function))
	default:
		r.refuse(fail(iproto.CodeNoSuchProcedure, fmt.Sprintf("Procedure '%s' is not defined", r.Function)))
	}
}

// roleExpression is the expression by which a pool of package tarantool queries the role of an
// instance.
const roleExpression = "return box.info.ro, box.info.status"

// info answers the two requests for the role of an instance. It returns Own for all others.
func (s *Server) info(r *Request) ([]any, error) {
	s.mu.Lock()
	readOnly := s.readOnly
	s.mu.Unlock()
	switch {
	case r.code == box.CodeEval && r.Function == roleExpression:
		return []any{readOnly, "running"}, nil
	case r.code != box.CodeEval && r.Function == "box.info":
		return []any{map[string]any{"ro": readOnly, "status": "running"}}, nil
	}
	return nil, Own
}

// known reports whether a server of this version knows the type of request.
func (r *Request) known() bool {
	s := r.conn.server
	switch c := r.code; {
	case c >= box.CodeSelect && c <= box.CodeCall, c == box.CodePing:
		return true
	case c >= box.CodeBegin && c <= box.CodeRollback:
		return s.has(box.FeatureTransactions)
	case c == box.CodeID:
		return s.config.Protocol > 0
	case c == box.CodeWatch, c == box.CodeUnwatch:
		return s.has(box.FeatureWatchers)
	case c == box.CodeWatchOnce:
		return s.has(box.FeatureWatchOnce)
	}
	return false
}

// finish answers with tuples, or with an error.
func (r *Request) finish(res *result, err error) {
	switch {
	case err != nil:
		r.refuse(err)
	case res == nil:
		r.conn.reply(box.EndReply(iproto.AppendMap(r.begin(), 0), 0))
	default:
		r.conn.reply(box.EndReply(res.append(r.begin()), 0))
	}
}

// authenticate checks a proof and sets the user of the connection.
func (r *Request) authenticate() error {
	s := r.conn.server
	if r.body.user != guest || len(r.Args) > 0 {
		if err := r.checkProof(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	r.conn.user = r.body.user
	s.mu.Unlock()
	return nil
}

func (r *Request) checkProof() error {
	s := r.conn.server
	if len(r.Args) != 2 {
		return fail(iproto.CodeInvalidMessagePack, "Invalid MsgPack - authentication request body")
	}
	method, _ := r.Args[0].(string)
	proof, isString := r.Args[1].(string)
	if b, isBytes := r.Args[1].([]byte); isBytes {
		proof = string(b) // some clients encode it as binary
	} else if !isString {
		return fail(iproto.CodeInvalidMessagePack, "Invalid MsgPack - authentication scramble")
	}
	if method != s.config.Auth {
		return fail(iproto.CodeUnknownAuthMethod, fmt.Sprintf("Unknown authentication method '%s'", method))
	}
	want, exists := s.config.Users[r.body.user]
	if method == box.AuthSHA1 {
		scramble := box.ScrambleSHA1(sha1.Sum, r.conn.salt, want)
		want = string(scramble[:])
	}
	if !exists || subtle.ConstantTimeCompare([]byte(proof), []byte(want)) != 1 {
		return fail(iproto.CodePasswordMismatch, "User not found or supplied credentials are invalid")
	}
	return nil
}

// identify sends the server's features and records the client's.
func (r *Request) identify() {
	s := r.conn.server
	s.mu.Lock()
	r.conn.features = r.body.features
	s.mu.Unlock()
	var features []box.Feature
	for f := range box.Feature(len(since)) {
		if s.has(f) {
			features = append(features, f)
		}
	}
	auth := s.config.Auth
	if s.config.Protocol < since[box.FeaturePagination] {
		auth = "" // reported only since the version that has more than one
	}
	r.conn.reply(box.EndReply(box.AppendID(r.begin(), uint32(s.config.Protocol), features, auth), 0))
}

// transact begins and ends transactions. It is called with mu held.
func (r *Request) transact() error {
	if r.stream == nil {
		return fail(iproto.CodeUnableToProcessOutOfStream, fmt.Sprintf("Unable to process %s request out of stream", r.Type))
	}
	s, st := r.conn.server, r.stream
	switch r.code {
	case box.CodeBegin:
		if st.tx != nil {
			return fail(iproto.CodeActiveTransaction, "Operation is not permitted when there is an active transaction ")
		}
		st.tx = s.data.begin()
		if r.body.timeout > 0 {
			st.tx.deadline = time.Now().Add(time.Duration(r.body.timeout * float64(time.Second)))
		}
		return nil
	case box.CodeRollback:
		st.tx = nil
		return nil
	}
	tx := st.tx
	st.tx = nil
	if tx == nil {
		return nil
	}
	if err := tx.expired(); err != nil {
		return err
	}
	return s.data.commit(tx)
}
