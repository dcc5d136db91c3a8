package browser

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/browser/proxy"
)

// The folders within the directory.
const (
	profiles   = "profiles"   // one for each life
	shared     = "shared"     // the profile that lives share, while none has it
	recordings = "recordings" // one for each life that recorded
)

const (
	startLimit  = 30 * time.Second       // for Chromium to show its first page
	endLimit    = 10 * time.Second       // for it to be gone, killed at last
	reportFirst = 100 * time.Millisecond // between two reports that are not taken, growing
	reportLast  = 5 * time.Second
)

// life is one body of an incarnation, from the first effect to the proof that
// nothing of it is left.
type life struct {
	of        body.Incarnation
	log       *slog.Logger
	directory string
	profile   string

	// Under the mutex of the Browser.
	running   int         // effects that are carried out, or wait for a start
	last      int         // number of the newest effect that began
	unsettled []string    // effects whose outcome is not known
	idle      *time.Timer // nil before the first effect has ended
	buried    bool        // its end has been begun
	over      bool        // its end was proved

	page *page // nil before the start; written by the effect that has the turn

	ending  sync.Mutex // held while it is ended
	process *process   // under ending

	pictures sync.Mutex
	picture  picture
}

// start starts the Chromium of a life and opens its page. What it may leave
// behind is on record before it begins (L-3.6). An error is body.ErrRefused if it
// is proved that nothing was left behind.
func (b *Browser) start(ctx context.Context, l *life, program string, note noter) error {
	proxy, err := b.outside()
	if err != nil {
		return fmt.Errorf("%w: %w", body.ErrRefused, err)
	}
	if err := b.prepare(ctx, l, note); err != nil {
		return fmt.Errorf("%w: %w", body.ErrRefused, err)
	}
	err = b.launch(ctx, l, program, proxy, note)
	if err == nil {
		return nil
	}
	quickly, cancel := context.WithTimeout(context.WithoutCancel(ctx), courtesy+time.Second)
	defer cancel()
	if b.end(quickly, l) == nil && ctx.Err() == nil {
		return fmt.Errorf("%w: start Chromium: %w", body.ErrRefused, err)
	}
	return fmt.Errorf("start Chromium: %w", err)
}

// noter puts a reference on record, as the Note of an effect does.
type noter = func(context.Context, jsontext.Value) error

// outside returns the proxy, which the first use starts. It clears away what dead
// lives of former processes have left.
func (b *Browser) outside() (*proxy.Proxy, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.proxy != nil {
		return b.proxy, nil
	}
	if err := b.sweepLocked(); err != nil {
		return nil, err
	}
	p, err := proxy.Start(proxy.Config{
		Allow: b.config.Allow, Refuse: b.config.Refuse, Ports: b.config.Ports,
		Resolver: b.config.Resolver, Log: b.config.Log, Refused: b.refused,
	})
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		b.config.Log.Warn("chromium runs without its sandbox, because the server runs as root")
	}
	b.proxy = p
	return p, nil
}

// sweepLocked removes the profiles that no life and no process has.
func (b *Browser) sweepLocked() error {
	entries, err := os.ReadDir(filepath.Join(b.config.Directory, profiles))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		profile := filepath.Join(b.config.Directory, profiles, entry.Name())
		if l := b.lives[body.Incarnation(entry.Name())]; l != nil && l.page != nil {
			continue
		}
		if all, err := living(profile); err != nil || len(all) > 0 {
			continue // it is for a recovery to end them
		}
		if err := b.clear(profile); err != nil {
			return err
		}
	}
	return nil
}

// refused notes what the proxy refused, for the effect that asked for it.
func (b *Browser) refused(target, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range b.lives {
		if p := l.page; p != nil && !l.over {
			p.hear(func(n *Notes) { n.Refused = appendNote(n.Refused, target+": "+reason) })
		}
	}
}

// prepare makes the profile of a life.
func (b *Browser) prepare(ctx context.Context, l *life, note noter) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	text, err := json.Marshal(reference{Profile: l.profile, Boot: boot})
	if err != nil {
		return err
	}
	if err := gone(ctx, l.profile); err != nil {
		return err
	}
	if err := note(ctx, text); err != nil {
		return err
	}
	if err := b.clear(l.profile); err != nil {
		return err
	}
	if b.config.SharedProfile {
		// It moves, and is back when the life is over: a profile has one life at a
		// time, and its path names it.
		err := os.Rename(filepath.Join(b.config.Directory, shared), l.profile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.MkdirAll(l.profile, 0o700)
}

// clear removes a profile that no process has, or puts it back for the next life
// to share.
func (b *Browser) clear(profile string) error {
	sweepSocket(profile)
	if b.config.SharedProfile {
		err := os.Rename(profile, filepath.Join(b.config.Directory, shared))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return os.RemoveAll(profile)
}

// launch starts the process, puts it on record, and opens its page.
func (b *Browser) launch(ctx context.Context, l *life, program string, proxy *proxy.Proxy, note noter) error {
	process, err := spawn(program, flags(l.profile, proxy.Flags()), environment(l.profile))
	if err != nil {
		return err
	}
	l.ending.Lock()
	l.process = process
	l.ending.Unlock()
	b.mu.Lock()
	if b.closed || l.buried {
		b.mu.Unlock()
		return errClosed
	}
	b.background.Go(func() {
		<-process.done
		b.bury(l)
	})
	b.mu.Unlock()
	boot, err := bootID()
	if err != nil {
		return err
	}
	text, err := json.Marshal(reference{l.profile, boot, process.identity})
	if err != nil {
		return err
	}
	if err := note(ctx, text); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	page, err := openPage(limited, process)
	if err != nil {
		select {
		case <-process.done:
			return process.whyEnded()
		case <-time.After(time.Second): // its pipe ends a little before it does
			return err
		}
	}
	b.mu.Lock()
	l.page = page
	b.mu.Unlock()
	return nil
}

// bury begins the end of a life, once; it is reported when it is proved.
func (b *Browser) bury(l *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buryLocked(l)
}

func (b *Browser) buryLocked(l *life) {
	if l.buried {
		return
	}
	l.buried = true
	if l.idle != nil {
		l.idle.Stop()
	}
	b.background.Go(func() { b.report(l) })
}

// end ends what is left of a life, and proves it. It may be called again.
func (b *Browser) end(ctx context.Context, l *life) error {
	l.ending.Lock()
	defer l.ending.Unlock()
	if l.process != nil {
		l.process.ask(ctx)
	}
	if err := finish(ctx, l.profile); err != nil {
		return err
	}
	if l.process != nil {
		select {
		case <-l.process.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		_ = l.process.pipe.Close()
	}
	b.mu.Lock()
	page, over := l.page, l.over
	b.mu.Unlock()
	if page != nil {
		page.close()
	}
	if err := gone(ctx, l.profile); err != nil || over {
		return err
	}
	l.forget()
	if err := b.clear(l.profile); err != nil {
		b.config.Log.Warn("the profile of a browser cannot be removed", "error", err)
	}
	b.mu.Lock()
	l.over = true
	b.mu.Unlock()
	return nil
}

// ask asks Chromium to write its profile and to end, and waits a while for it.
func (p *process) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, courtesy)
	defer cancel()
	// The connection counts its own messages from 1; nobody waits for this answer.
	_ = p.pipe.Write(ctx, &cdproto.Message{ID: 1 << 30, Method: "Browser.close"})
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

// report ends a life and tells the host: of effects whose outcome was not known
// that nothing of them acts any more, and that the body has ended (L-13.2). It
// goes on until that is taken, or needless.
func (b *Browser) report(l *life) {
	for wait := reportFirst; ; wait = min(2*wait, reportLast) {
		if b.reportOnce(l) || sleep(b.ctx, wait) != nil {
			return
		}
	}
}

func (b *Browser) reportOnce(l *life) (done bool) {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if err := b.end(ctx, l); err != nil {
		b.config.Log.Warn("a browser cannot be ended", "incarnation", l.of, "error", err)
		return false
	}
	b.mu.Lock()
	host, last, unsettled := b.host, l.last, slices.Clone(l.unsettled)
	replaced := b.lives[l.of] != l && b.lives[l.of] != nil && b.lives[l.of].page != nil
	b.mu.Unlock()
	if host == nil {
		return true
	}
	for _, operation := range unsettled {
		_ = host.Settled(ctx, l.of, operation, nil) // stale until the call is on record as unknown
	}
	if replaced && len(unsettled) == 0 {
		return true // the life has another body now, whose end will be told
	}
	err := host.Ended(ctx, body.Evidence{Incarnation: l.of, Proof: body.ProofClosed}, last)
	if err != nil && !errors.Is(err, body.ErrStale) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lives[l.of] == l {
		delete(b.lives, l.of)
	}
	return true
}

// closeIdle closes the body of a life that has had no effect for a while.
func (b *Browser) closeIdle(l *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.running == 0 {
		b.buryLocked(l)
	}
}
