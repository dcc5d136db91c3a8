// Package browser is a body: a real Chromium with a profile of the agent's own,
// that one conversation at a time borrows under the lease of "browser".
//
// Make a [Browser] with [New], hand it to the registry of package lease, and
// close it when the process ends. Its actions are the constants from [Open] to
// [Close]; each has a type for its input and one for its result.
//
// What it promises:
//
//   - Each incarnation has a Chromium and a profile of its own, and both are gone
//     when its life is over: no page, cookie, storage, variable, selection or
//     recording of one holder reaches the next (L-13.5). With
//     [Config].SharedProfile the profile stays, cookies and storage included; the
//     page, the variables and the recording do not.
//   - A call that is cut has an unknown outcome, and costs the life its Chromium:
//     the outcome is settled when no process of it is left, for cancelling a call
//     stops no page.
//   - The end of a life is proved by looking for its processes, also after a
//     restart, and never by what this process remembers (L-11.11).
//   - Chromium reaches the network through package proxy only: no private
//     address, nothing on the list of refusals, and no file.
//   - It starts on first use. Where there is no Chromium, each effect is refused
//     in one line, and nothing else is wrong.
//
// What a page says (its text, its title, its dialogs, a result of its script) is
// written by strangers. It is tainted, and whoever hands it to a model marks it
// so. A page that opens a window gets it closed, and its address is reported; its
// dialogs are dismissed and reported; it downloads nothing and is granted nothing.
package browser

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/browser/proxy"
)

// Config says how the browser runs.
type Config struct {
	// Directory is where profiles and recordings are kept. It belongs to this
	// Browser alone, and is made when it is missing.
	Directory string

	// Executable is the program, a path or a name. Empty: the first of chromium,
	// chromium-browser, google-chrome and google-chrome-stable on the PATH.
	Executable string

	// SharedProfile lets the next holder have the cookies and the storage of the
	// last. Otherwise every life begins with an empty profile.
	SharedProfile bool

	// Allow, Refuse, Ports and Resolver are those of [proxy.Config]. The origin
	// of the server itself belongs into Refuse.
	Allow, Refuse []string
	Ports         []int
	Resolver      proxy.Resolver

	Idle time.Duration // without an effect, after which Chromium is closed; 5 minutes if 0
	Log  *slog.Logger  // slog.Default if nil
}

// Browser is the adapter of a browser. Make one with [New], and close it.
type Browser struct {
	config Config
	turn   chan struct{} // held by the one effect that is carried out

	ctx        context.Context // ends with the adapter
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu     sync.Mutex
	host   body.Host
	closed bool
	proxy  *proxy.Proxy // nil before the first use
	lives  map[body.Incarnation]*life
}

var _ body.Adapter = (*Browser)(nil)

// errClosed says that the adapter takes no effects any more.
var errClosed = fmt.Errorf("%w: the browser has been shut down", body.ErrRefused)

// New makes the adapter. Nothing is started, and no Chromium is looked for.
func New(config Config) (*Browser, error) {
	if config.Idle == 0 {
		config.Idle = 5 * time.Minute
	}
	if config.Log == nil {
		config.Log = slog.Default()
	}
	if config.Directory == "" {
		return nil, errors.New("the browser needs a directory for its profiles")
	}
	directory, err := filepath.Abs(config.Directory)
	if err != nil {
		return nil, fmt.Errorf("directory of the browser: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(directory, profiles), 0o700); err != nil {
		return nil, fmt.Errorf("directory of the browser: %w", err)
	}
	// Chromium hands the real path to its children, by which they are found.
	if config.Directory, err = filepath.EvalSymlinks(directory); err != nil {
		return nil, fmt.Errorf("directory of the browser: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Browser{config: config, turn: make(chan struct{}, 1), ctx: ctx, cancel: cancel, lives: map[body.Incarnation]*life{}}, nil
}

// Attach implements [body.Adapter].
func (b *Browser) Attach(host body.Host) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.host = host
}

// Close ends every Chromium, reports the ends that are proved, and waits until
// nothing of the adapter acts. An effect after it is refused.
func (b *Browser) Close() error {
	b.mu.Lock()
	b.closed = true
	for _, l := range b.lives {
		b.buryLocked(l)
	}
	p := b.proxy
	b.mu.Unlock()
	b.cancel()
	b.turn <- struct{}{} // the effect that ran has lost its Chromium, and has left
	<-b.turn
	b.background.Wait()
	if p == nil {
		return nil
	}
	return p.Close()
}

// Screenshot returns the newest picture of the page of exactly this incarnation,
// a JPEG that the caller may keep and must not change, and when it was taken.
// Pictures are taken by the actions open and screenshot, and are forgotten when
// the life is over.
func (b *Browser) Screenshot(of body.Incarnation) (jpeg []byte, at time.Time, ok bool) {
	b.mu.Lock()
	l := b.lives[of]
	b.mu.Unlock()
	if l == nil {
		return nil, time.Time{}, false
	}
	return l.lastPicture()
}

// Perform implements [body.Adapter]. Effects wait for one another, and ask to
// begin when their turn has come.
func (b *Browser) Perform(ctx context.Context, e body.Effect) (jsontext.Value, error) {
	act, err := parse(e.Action, e.Input)
	if err != nil {
		return nil, err
	}
	if !safeName.MatchString(string(e.Incarnation)) {
		return nil, fmt.Errorf("%w: the incarnation cannot name a profile", body.ErrRefused)
	}
	program, err := b.program()
	if err != nil {
		return nil, err
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := e.Begin(ctx); err != nil {
		return nil, err
	}
	l, err := b.enter(e)
	if err != nil {
		return nil, err
	}
	result, err := b.carryOut(ctx, l, program, e, act)
	b.leave(l, e, err)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// carryOut starts Chromium if it does not run, and acts.
func (b *Browser) carryOut(ctx context.Context, l *life, program string, e body.Effect, act action) (jsontext.Value, error) {
	if e.Action == Close {
		if err := b.end(ctx, l); err != nil {
			return nil, err
		}
		return json.Marshal(Closed{true})
	}
	if l.page == nil {
		if err := b.start(ctx, l, program, e.Note); err != nil {
			return nil, err
		}
	}
	result, err := act(ctx, l)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// enter counts an effect that runs on a life, and makes the life if there is none.
func (b *Browser) enter(e body.Effect) (*life, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lives[e.Incarnation]
	switch {
	case b.closed:
		return nil, errClosed
	case l != nil && !l.over && l.buried:
		return nil, fmt.Errorf("%w: the browser is being closed", body.ErrRefused)
	case l == nil || l.over:
		former := l
		l = &life{of: e.Incarnation, log: b.config.Log, directory: b.config.Directory, profile: b.profile(e.Incarnation)}
		if former != nil {
			// What the former body of the life reports covers this effect as soon as
			// it has ended, should it bring no new body to life.
			former.last = e.Number
		}
		b.lives[e.Incarnation] = l
	}
	if l.idle != nil {
		l.idle.Stop()
	}
	l.running++
	l.last = max(l.last, e.Number)
	return l, nil
}

// leave ends what enter began. An effect whose outcome is not known, and a body
// that has been closed, end the life.
func (b *Browser) leave(l *life, e body.Effect, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.running--
	switch {
	case err != nil && !errors.Is(err, body.ErrRefused):
		l.unsettled = append(l.unsettled, e.Operation)
		b.buryLocked(l)
	case l.page == nil || e.Action == Close:
		b.buryLocked(l)
	case l.idle == nil:
		l.idle = time.AfterFunc(b.config.Idle, func() { b.closeIdle(l) })
	default:
		l.idle.Reset(b.config.Idle)
	}
}

// Stop implements [body.Adapter].
func (b *Browser) Stop(ctx context.Context, of body.Life, guard func(context.Context) error) error {
	if err := guard(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	l := b.lives[of.Incarnation]
	if l != nil {
		b.buryLocked(l)
	}
	b.mu.Unlock()
	if l != nil {
		return b.end(ctx, l)
	}
	profile, _ := b.refer(of)
	if err := finish(ctx, profile); err != nil {
		return err
	}
	if filepath.Dir(profile) == filepath.Join(b.config.Directory, profiles) {
		return b.clear(profile)
	}
	return nil
}

// Check implements [body.Adapter]: no effect of the life runs, its recording is
// closed, and twice there is no process with its profile.
func (b *Browser) Check(ctx context.Context, of body.Life) (body.Evidence, error) {
	b.mu.Lock()
	l := b.lives[of.Incarnation]
	acts := l != nil && (l.running > 0 || !l.over)
	b.mu.Unlock()
	if acts {
		return body.Evidence{}, body.ErrAlive
	}
	profile, first := b.refer(of)
	if first.lives() {
		return body.Evidence{}, fmt.Errorf("%w: process %d", body.ErrAlive, first.PID)
	}
	if err := gone(ctx, profile); err != nil {
		return body.Evidence{}, err
	}
	proof := body.ProofGone
	if of.Begun == 0 {
		proof = body.ProofNeverBegan
	}
	return body.Evidence{Incarnation: of.Incarnation, Proof: proof}, nil
}

// reference is what is put on record of a body.
type reference struct {
	Profile  string `json:"profile"`
	Boot     string `json:"boot"` // the run of the machine
	identity        // of the first process; zero before it was started
}

// refer reads the reference of a life: its profile, and its first process if the
// machine still runs that could have it.
func (b *Browser) refer(of body.Life) (profile string, first identity) {
	var r reference
	boot, err := bootID()
	if json.Unmarshal(of.Reference, &r) != nil || !filepath.IsAbs(r.Profile) {
		return b.profile(of.Incarnation), identity{}
	}
	if err != nil || r.Boot != boot {
		return r.Profile, identity{}
	}
	return r.Profile, r.identity
}

// safeName is what the name of a folder may be made of.
var safeName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

// profile returns the folder of an incarnation's profile.
func (b *Browser) profile(of body.Incarnation) string {
	return filepath.Join(b.config.Directory, profiles, filepath.Base(string(of)))
}

// program finds Chromium. Otherwise: body.ErrRefused, in one line.
func (b *Browser) program() (string, error) {
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if b.config.Executable != "" {
		names = []string{b.config.Executable}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	if b.config.Executable != "" {
		return "", fmt.Errorf("%w: no Chromium found: %q is no program", body.ErrRefused, b.config.Executable)
	}
	return "", fmt.Errorf("%w: no Chromium found: install the package chromium, or name the program in the configuration", body.ErrRefused)
}

// sleep waits for a time, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
