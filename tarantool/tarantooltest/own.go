package tarantooltest

import (
	"crypto/sha1"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

const guest = "guest"

// own answers in the server's own way.
func (r *Request) own() {
	s := r.conn.server
	if r.broken != nil {
		r.refuse(fail(iproto.ErrInvalidMessagePack, "Invalid MsgPack - packet body"))
		return
	}
	s.mu.Lock()
	denied, version, function := s.denies(r), s.data.version, s.function(r)
	s.mu.Unlock()
	if denied {
		r.refuse(fail(iproto.ErrAccessDenied, fmt.Sprintf("Access denied for user '%s': %s", guest, r.Type)))
		return
	}
	if !r.known() {
		r.refuse(fail(iproto.ErrUnknownRequestType, fmt.Sprintf("Unknown request type %d", r.code)))
		return
	}
	switch r.code {
	case iproto.CodePing:
		r.conn.reply(iproto.AppendReply(nil, r.sync, version))
	case iproto.CodeAuth:
		r.finish(nil, r.authenticate())
	case iproto.CodeID:
		r.identify()
	case iproto.CodeCall, iproto.CodeCall16, iproto.CodeEval:
		r.run(function)
	case iproto.CodeWatch, iproto.CodeUnwatch, iproto.CodeWatchOnce:
		r.watch()
	case iproto.CodeBegin, iproto.CodeCommit, iproto.CodeRollback:
		s.mu.Lock()
		err := r.transact()
		s.mu.Unlock()
		r.finish(nil, err)
	case iproto.CodeExecute, iproto.CodePrepare:
		r.sql()
	default:
		r.finish(r.operate())
	}
}

// run calls a function, nil if there is none.
func (r *Request) run(function Handler) {
	var results []any
	err := Own
	if function != nil {
		results, err = function(r)
	}
	switch {
	case !errors.Is(err, Own):
		r.say(results, err)
	case r.code == iproto.CodeEval:
		r.refuse(fmt.Errorf("tarantooltest: nothing is defined for %q", r.Function))
	default:
		r.refuse(fail(iproto.ErrNoSuchProcedure, fmt.Sprintf("Procedure '%s' is not defined", r.Function)))
	}
}

// known says whether a server of this version knows the type of request.
func (r *Request) known() bool {
	s := r.conn.server
	switch c := r.code; {
	case c >= iproto.CodeSelect && c <= iproto.CodeExecute, c == iproto.CodePrepare, c == iproto.CodePing:
		return true
	case c >= iproto.CodeBegin && c <= iproto.CodeRollback:
		return s.has(iproto.FeatureTransactions)
	case c == iproto.CodeArrow:
		return s.has(iproto.FeatureArrow)
	case c == iproto.CodeID:
		return s.config.Protocol > 0
	case c == iproto.CodeWatch, c == iproto.CodeUnwatch:
		return s.has(iproto.FeatureWatchers)
	case c == iproto.CodeWatchOnce:
		return s.has(iproto.FeatureWatchOnce)
	}
	return false
}

// finish answers with tuples, or with an error.
func (r *Request) finish(res *result, err error) {
	switch {
	case err != nil:
		r.refuse(err)
	case res == nil:
		r.conn.reply(iproto.EndReply(iproto.AppendMap(r.begin(), 0), 0))
	default:
		r.conn.reply(iproto.EndReply(res.append(r.begin()), 0))
	}
}

// authenticate checks a proof and makes the connection one of its user.
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
		return fail(iproto.ErrInvalidMessagePack, "Invalid MsgPack - authentication request body")
	}
	method, _ := r.Args[0].(string)
	proof, isString := r.Args[1].(string)
	if b, isBytes := r.Args[1].([]byte); isBytes {
		proof = string(b) // some clients say that it is no text
	} else if !isString {
		return fail(iproto.ErrInvalidMessagePack, "Invalid MsgPack - authentication scramble")
	}
	if method != s.config.Auth {
		return fail(iproto.ErrUnknownAuthMethod, fmt.Sprintf("Unknown authentication method '%s'", method))
	}
	want, exists := s.config.Users[r.body.user]
	if method == iproto.AuthSHA1 {
		scramble := iproto.ScrambleSHA1(sha1.Sum, r.conn.salt, want)
		want = string(scramble[:])
	}
	if !exists || subtle.ConstantTimeCompare([]byte(proof), []byte(want)) != 1 {
		return fail(iproto.ErrPasswordMismatch, "User not found or supplied credentials are invalid")
	}
	return nil
}

// identify tells the server's features and learns the client's.
func (r *Request) identify() {
	s := r.conn.server
	s.mu.Lock()
	r.conn.features = r.body.features
	s.mu.Unlock()
	var features []iproto.Feature
	for f := range iproto.Feature(len(since)) {
		if s.has(f) {
			features = append(features, f)
		}
	}
	auth := s.config.Auth
	if s.config.Protocol < since[iproto.FeaturePagination] {
		auth = "" // told since the version that has more than one
	}
	r.conn.reply(iproto.EndReply(iproto.AppendID(r.begin(), uint32(s.config.Protocol), features, auth), 0))
}

// transact begins and ends transactions. It is called with mu held.
func (r *Request) transact() error {
	if r.stream == nil {
		return fail(iproto.ErrUnableToProcessOutOfStream, fmt.Sprintf("Unable to process %s request out of stream", r.Type))
	}
	s, st := r.conn.server, r.stream
	switch r.code {
	case iproto.CodeBegin:
		if st.tx != nil {
			return fail(iproto.ErrActiveTransaction, "Operation is not permitted when there is an active transaction ")
		}
		st.tx = s.data.begin()
		if r.body.timeout > 0 {
			st.tx.deadline = time.Now().Add(time.Duration(r.body.timeout * float64(time.Second)))
		}
		return nil
	case iproto.CodeRollback:
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
