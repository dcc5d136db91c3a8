package server

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
	"unicode/utf8"

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
			s.refuse(w, err)
			return
		}
		respond(w, http.StatusOK, presenceOf(who))
	}
}

// open opens a session: of a link, by its code, or of whoever sends a token or a
// JWT. Where an address has failed too often, nothing is looked at.
func (s *sessions) open(w http.ResponseWriter, r *http.Request) {
	end, wait := s.failures.begin(neighbourhood(r))
	if wait > 0 {
		s.refuse(w, &denial{status: http.StatusTooManyRequests, code: "too many requests", reason: "failures", wait: wait})
		return
	}
	var guess error
	defer func() { end(guess) }() // after a panic too (C-32.13)
	session, secret, err := s.admit(w, r)
	if errors.Is(err, datadir.ErrNoToken) { // what is wrong otherwise is no guess
		guess = err
	}
	if err != nil {
		s.refuse(w, err)
		return
	}
	s.setCookie(w, r, secret.Reveal(), time.Until(session.Expires))
	respond(w, http.StatusCreated, presenceOf(session))
}

// admit finds out for whom a session is to be, in the order of the API's door,
// and opens it.
//
// Errors: [datadir.ErrNoToken], [denial].
func (s *sessions) admit(w http.ResponseWriter, r *http.Request) (datadir.Token, identity.Secret, error) {
	_, bears := r.Header["Authorization"]
	var bearer datadir.Token
	if bears {
		var err error
		if bearer, err = s.callers.find(r); err != nil {
			return datadir.Token{}, identity.Secret{}, err
		}
	}
	code, err := readCode(w, r)
	switch {
	case err != nil:
		return datadir.Token{}, identity.Secret{}, err
	case bears && code != nil:
		return datadir.Token{}, identity.Secret{}, badRequest("two-credentials")
	case bears:
		return s.openFor(r, bearer)
	case code == nil:
		return datadir.Token{}, identity.Secret{}, datadir.ErrNoToken
	}
	if _, err := s.callers.look(datadir.KindLink, *code); err != nil { // a guess takes no lock and writes nothing
		return datadir.Token{}, identity.Secret{}, err
	}
	return s.dir.RedeemLink(r.Context(), *code)
}

// openFor opens a session of the one who sent a token, which ends with it.
func (s *sessions) openFor(r *http.Request, bearer datadir.Token) (datadir.Token, identity.Secret, error) {
	end, wait := s.opened.begin(bearer.Identity.Key())
	if wait > 0 {
		return datadir.Token{}, identity.Secret{}, &denial{status: http.StatusTooManyRequests, code: "too many requests", reason: "sessions", wait: wait}
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
		err = badRequest("no-session")
	}
	if err == nil {
		if err = s.dir.RevokeToken(r.Context(), who.ID); errors.Is(err, datadir.ErrNoToken) {
			err = nil // it has ended meanwhile
		}
	}
	if err != nil {
		s.refuse(w, err)
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

// readCode reads the body of a POST: the code of a link, nil if it has none.
func readCode(w http.ResponseWriter, r *http.Request) (*string, error) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" || len(r.Header.Values("Content-Type")) != 1 { // C-32.3
		return nil, &denial{status: http.StatusUnsupportedMediaType, code: "unsupported media type"}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, gateway.MaxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok { // C-32.6
		return nil, &denial{status: http.StatusRequestEntityTooLarge, code: "too large"}
	}
	if err != nil {
		return nil, badRequest("body-incomplete")
	}
	var body struct {
		Code *string `json:"code"`
	}
	if !utf8.Valid(data) {
		return nil, badRequest("invalid-utf8")
	}
	err = json.Unmarshal(data, &body)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, badRequest("duplicate-name")
	}
	if _, ok := errors.AsType[*json.SemanticError](err); ok {
		return nil, badRequest("wrong-type")
	}
	if err != nil {
		return nil, badRequest("malformed-json")
	}
	return body.Code, nil
}

// denial is an error that is answered as it is.
type denial struct {
	status       int
	code, reason string
	wait         time.Duration // after which it may be tried again
}

// Error names code and reason.
func (d *denial) Error() string { return d.code + " " + d.reason }

func badRequest(reason string) error {
	return &denial{status: http.StatusBadRequest, code: "bad request", reason: reason}
}

// refuse answers an error. Whoever is not known gets one answer, whatever is
// wrong; what is the server's own fault is for its log.
func (s *sessions) refuse(w http.ResponseWriter, err error) {
	d, ok := errors.AsType[*denial](err)
	switch {
	case ok:
	case errors.Is(err, datadir.ErrNoToken):
		d = &denial{status: http.StatusUnauthorized, code: "unauthorized"}
		w.Header().Set("WWW-Authenticate", "Bearer")
	default:
		s.log.Error("a session cannot be opened or ended", "error", err)
		d = &denial{status: http.StatusServiceUnavailable, code: "unavailable", wait: 5 * time.Second}
	}
	if d.wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((d.wait+time.Second-1)/time.Second)))
	}
	respond(w, d.status, struct {
		Code   string `json:"error"`
		Reason string `json:"reason,omitzero"`
	}{d.code, d.reason})
}

// respond writes a JSON answer.
func respond(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value, jsontext.EscapeForJS(true))
	if err != nil {
		panic("server: an answer is no JSON") // of a name that was checked on its way in
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // whoever asked is gone, or has the status
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
