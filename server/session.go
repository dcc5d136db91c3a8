package server

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/parley-run/parley/gateway"
	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/server/datadir"
)

const (
	// failuresPerMinute is how often an address may fail to open a session.
	failuresPerMinute = 10
	// sessionsPerMinute is how many sessions an identity may open by its token: each
	// of them is a write to the disk.
	sessionsPerMinute = 10
)

// sessions are the sessions of browsers, at /session: POST opens one, GET says
// whose it is, DELETE ends it.
type sessions struct {
	callers *callers
	dir     datadir.Dir
	secure  func(*http.Request) bool // whether a cookie may ask for TLS
	log     *slog.Logger

	failures *tally // by address
	opened   *tally // by identity
}

func newSessions(c *callers, dir datadir.Dir, secure func(*http.Request) bool, log *slog.Logger) *sessions {
	return &sessions{
		callers: c, dir: dir, secure: secure, log: log,
		failures: newTally(failuresPerMinute), opened: newTally(sessionsPerMinute),
	}
}

// behind puts the routes behind an edge: a page from elsewhere opens no session
// and ends none (C-32.1).
func (s *sessions) behind(edge *gateway.Edge) http.Handler {
	return edge.Guard([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete}, s)
}

// presence is who is there, and until when, if there is an end.
type presence struct {
	Identity identity.Identity `json:"identity"`
	Expires  time.Time         `json:"expires,omitzero"`
}

func presenceOf(t datadir.Token) presence {
	return presence{Identity: t.Identity, Expires: t.Expires.UTC().Truncate(time.Millisecond)}
}

// ServeHTTP answers a request.
func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodPost:
		s.open(w, r)
	case http.MethodDelete:
		s.close(w, r)
	default:
		who, err := s.callers.find(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		gateway.Answer(w, http.StatusOK, presenceOf(who))
	}
}

// open opens a session: of a link, by its code, or of whoever sends a token or a
// JWT.
func (s *sessions) open(w http.ResponseWriter, r *http.Request) {
	session, secret, err := s.admit(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.setCookie(w, r, secret.Reveal(), time.Until(session.Expires))
	gateway.Answer(w, http.StatusCreated, presenceOf(session))
}

// admit finds out for whom a session is to be, in the order of the API's door,
// and opens it.
//
// Errors: [datadir.ErrNoToken], [gateway.Refusal].
func (s *sessions) admit(w http.ResponseWriter, r *http.Request) (session datadir.Token, secret identity.Secret, err error) {
	_, bears := r.Header["Authorization"]
	var bearer datadir.Token
	if bears {
		err = s.guess(r, func() error {
			bearer, err = s.callers.find(r)
			return err
		})
		if err != nil {
			return datadir.Token{}, identity.Secret{}, err
		}
	}
	body, err := gateway.Read[struct {
		Code *string `json:"code"`
	}](w, r)
	switch {
	case err != nil:
		return datadir.Token{}, identity.Secret{}, err
	case bears && body.Code != nil:
		return datadir.Token{}, identity.Secret{}, gateway.BadRequest("two-credentials")
	case bears:
		return s.openFor(r, bearer)
	}
	err = s.guess(r, func() error {
		if body.Code == nil {
			return datadir.ErrNoToken
		}
		if _, err := s.callers.look(datadir.KindLink, *body.Code); err != nil { // a guess takes no lock and writes nothing
			return err
		}
		session, secret, err = s.dir.RedeemLink(r.Context(), *body.Code)
		return err
	})
	return session, secret, err
}

// guess looks at a credential, unless its address has failed too often. It is
// counted while it is looked at, and not while its sender takes their time.
func (s *sessions) guess(r *http.Request, look func() error) error {
	end, wait := s.failures.begin(neighbourhood(r))
	if wait > 0 {
		return gateway.TooMany("failures", wait)
	}
	var guessed error
	defer func() { end(guessed) }() // after a panic too (C-32.13)
	err := look()
	if errors.Is(err, datadir.ErrNoToken) { // what is wrong otherwise is no guess
		guessed = err
	}
	return err
}

// openFor opens a session of the one who sent a token, which ends with it.
func (s *sessions) openFor(r *http.Request, bearer datadir.Token) (datadir.Token, identity.Secret, error) {
	end, wait := s.opened.begin(bearer.Identity.Key())
	if wait > 0 {
		return datadir.Token{}, identity.Secret{}, gateway.TooMany("sessions", wait)
	}
	defer end(errOpened)
	return s.dir.OpenSession(r.Context(), bearer.Identity, bearer.ID, bearer.Expires)
}

// errOpened makes a session count.
var errOpened = errors.New("a session was opened")

// close ends the session of the request's cookie. A token is ended by who made it.
func (s *sessions) close(w http.ResponseWriter, r *http.Request) {
	who, err := s.callers.find(r)
	if err == nil && who.Kind != datadir.KindSession {
		err = gateway.BadRequest("no-session")
	}
	if err == nil {
		if err = s.dir.RevokeToken(r.Context(), who.ID); errors.Is(err, datadir.ErrNoToken) {
			err = nil // it has ended meanwhile
		}
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.setCookie(w, r, "", -time.Second)
	w.WriteHeader(http.StatusNoContent)
}

// setCookie gives a browser its session, or takes it away. No script can read it
// and no other site makes the browser send it.
func (s *sessions) setCookie(w http.ResponseWriter, r *http.Request, secret string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: s.callers.cookie(r), Value: secret, Path: "/", MaxAge: int(life / time.Second),
		Secure: s.secure(r), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// cookieName is the name of a session's cookie. Under TLS browsers see to it that
// nobody else sets one of that name; without it the port keeps the servers of one
// machine apart, which browsers do not.
func (s *Server) cookieName(r *http.Request) string {
	if s.door.secure(r) {
		return "__Host-parley"
	}
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	return "parley_" + port
}

// refuse answers an error. Whoever is not known gets one answer, whatever is
// wrong; what is the server's own fault is for its log.
func (s *sessions) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal, ok := errors.AsType[*gateway.Refusal](err)
	switch {
	case ok:
	case errors.Is(err, datadir.ErrNoToken):
		refusal = &gateway.Refusal{Status: http.StatusUnauthorized, Code: "unauthorized"}
	default:
		s.log.Error("a session cannot be opened or ended", "error", err)
		refusal = &gateway.Refusal{Status: http.StatusServiceUnavailable, Code: "unavailable"}
	}
	refusal.Answer(w, r)
}

// neighbourhood is the network of one person: an address, or the 64 bits of one
// that whoever has them can go on from at will.
func neighbourhood(r *http.Request) string {
	peer := peerOf(r)
	if !peer.IsValid() {
		return r.RemoteAddr
	}
	if peer.Is6() {
		return netip.PrefixFrom(peer, 64).Masked().String()
	}
	return peer.String()
}
