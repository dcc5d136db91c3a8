package issuer

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// questionTime is how long an issuer may take to answer.
	questionTime = 10 * time.Second
	// maxAnswerBytes is the largest document that is taken from an issuer.
	maxAnswerBytes = 1 << 20
	// maxRedirects is how often a question may be sent elsewhere.
	maxRedirects = 5
	// keyPause is the shortest time between two questions for keys: whoever can
	// reach the server can have it ask, with a JWT of a key that nobody knows.
	keyPause = 10 * time.Second
)

// direct is how an issuer is reached. Questions are rare, so nothing is
// kept open between them.
func direct() http.RoundTripper {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
		TLSHandshakeTimeout: questionTime, ResponseHeaderTimeout: questionTime, MaxResponseHeaderBytes: 64 << 10,
	}
}

// roundTrip asks one question.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip asks one question.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// questions asks an issuer for its documents until ctx is done: by https alone,
// redirects too, unless local says that http on this machine will do, and with a
// bound on time and size.
func questions(ctx context.Context, transport http.RoundTripper, local func(*url.URL) bool) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		if r.URL.Scheme != "https" && !local(r.URL) {
			return nil, errors.New("it is to be asked without TLS")
		}
		within, cancel := context.WithTimeout(r.Context(), questionTime)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		answer, err := transport.RoundTrip(r.WithContext(within))
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		return answer, take(answer)
	}
}

// take reads an answer, which is a JSON object or a redirect. The text of any
// other one is nobody's business, the log's neither.
func take(answer *http.Response) error {
	if answer.StatusCode >= 300 && answer.StatusCode < 400 && answer.Header.Get("Location") != "" {
		answer.Body = http.NoBody
		return nil
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return err
	case len(body) > maxAnswerBytes:
		return fmt.Errorf("its answer is larger than %d bytes", maxAnswerBytes)
	case jsontext.Value(body).Kind() != '{' || !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true)):
		return errors.New("its answer is no JSON object")
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// fewRedirects stops a question that is sent around in circles.
func fewRedirects(_ *http.Request, before []*http.Request) error {
	if len(before) > maxRedirects {
		return errors.New("redirected too often")
	}
	return nil
}

// clientOver is an HTTP client that asks so.
func clientOver(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: fewRedirects}
}

// errAskedLately says that an issuer is not asked again so soon.
var errAskedLately = errors.New("the issuer was asked for its keys a moment ago")

// keyQuestions asks an issuer for its keys, at most once in keyPause.
type keyQuestions struct {
	questions roundTrip
	work      *sync.WaitGroup // counts the questions that are being asked
	report    func(error)     // is told how each of them ends

	mu    sync.Mutex
	asked time.Time
}

// RoundTrip asks one question.
func (k *keyQuestions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Response == nil && !k.mayAsk() { // what follows a redirect is no question of its own
		return nil, errAskedLately
	}
	k.work.Add(1)
	defer k.work.Done()
	answer, err := k.questions(r)
	if err == nil && answer.StatusCode == http.StatusOK {
		err = checkKeys(answer)
	}
	switch {
	case errors.Is(err, context.Canceled): // the server stops
		return nil, err
	case err != nil:
		k.report(err)
		return nil, err
	case answer.StatusCode == http.StatusOK:
		k.report(nil)
	}
	return answer, nil
}

// mayAsk reports whether keys may be asked for now, and notes that they are.
func (k *keyQuestions) mayAsk() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); k.asked.IsZero() || now.Sub(k.asked) >= keyPause {
		k.asked = now
		return true
	}
	return false
}

// checkKeys refuses an answer without keys, so that those that are known stay.
func checkKeys(answer *http.Response) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if err := json.Unmarshal(body, &set, jsontext.AllowDuplicateNames(true)); err != nil || len(set.Keys) == 0 {
		return errors.New("its answer has no keys")
	}
	return nil
}
