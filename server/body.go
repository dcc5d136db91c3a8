package server

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-run/parley/body"
	"github.com/parley-run/parley/body/browser"
	"github.com/parley-run/parley/body/browser/proxy"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/lease"
)

// Browser says how the agent's browser is set up; each zero field means its default.
type Browser struct {
	Executable    string `toml:"executable"`     // a path or a name; found on the PATH if empty
	SharedProfile bool   `toml:"shared_profile"` // cookies and storage stay for the next who uses it

	Allow  []string `toml:"allow"`  // what it may reach although it is private, see proxy.Config
	Refuse []string `toml:"refuse"` // what it may never reach, beside the server itself
	Ports  []int    `toml:"ports"`  // that it may reach; 80 and 443 if empty
}

// check refuses addresses that cannot be read.
func (b Browser) check() error {
	return proxy.Config{Allow: b.Allow, Refuse: b.Refuse, Ports: b.Ports}.Check()
}

// browserIdle is how long the browser stays open that nobody uses. Others wait so
// long for one that was forgotten.
const browserIdle = 3 * time.Minute

// open takes what is on record of the agent's body, and makes its parts. It
// starts none.
func (h *hands) open(ctx context.Context, s *Server, settings Settings, may *rights, client *conversation.Client) error {
	var err error
	h.browser, err = browser.New(browser.Config{
		Directory: filepath.Join(s.dir.Path(), "browser"), Executable: settings.Browser.Executable, SharedProfile: settings.Browser.SharedProfile,
		Allow: settings.Browser.Allow, Refuse: append(s.ownAddresses(settings), settings.Browser.Refuse...), Ports: settings.Browser.Ports,
		Idle: browserIdle, Log: s.log,
	})
	if err != nil {
		return err
	}
	over := func(ctx context.Context, holder lease.Caller) bool {
		ended, err := conversation.TurnOver(ctx, s.store, holder.Conversation, holder.Seat.ID)
		return err == nil && ended
	}
	h.registry, err = lease.Open(ctx, lease.Config{
		Store: s.store, Bodies: map[lease.Resource]body.Adapter{lease.Browser: h.browser},
		Granted: may.mayUse, Over: over, Wake: wakeBy(conversation.NewNotifier(client)), Log: s.log,
	})
	if err != nil {
		return fmt.Errorf("leases: %w", err)
	}
	return nil
}

// wakeBy tells a conversation that what it waited for was given back (L-20.3).
func wakeBy(notifier *conversation.Notifier) func(context.Context, lease.Request) error {
	return func(ctx context.Context, r lease.Request) error {
		notice := conversation.Notice{
			ID: r.ID, Topic: conversation.TopicLease,
			Text: fmt.Sprintf("The %s was given back (%s has ended). It is not reserved: another conversation may take it first.", r.Resource, r.Incarnation),
		}
		if strings.HasPrefix(r.Requester.Seat.ID, conversation.TurnPrefix) { // of a shared conversation
			notice.For, notice.Classes = &r.Requester.Identity, []string{}
		}
		return notifier.Notify(ctx, r.Requester.Conversation, notice)
	}
}

// close ends the parts of the body, and then the registry, which is told of it.
func (h *hands) close() {
	if h.browser != nil {
		_ = h.browser.Close() // what is left of it is found at the next start
	}
	if h.registry != nil {
		h.registry.Close()
	}
}

// ownAddresses are those of the server itself, which no page may reach: its port at
// every address of the machine, and the name under which people meet it.
func (s *Server) ownAddresses(settings Settings) []string {
	var own []string
	if _, port, err := net.SplitHostPort(s.listener.Addr().String()); err == nil {
		own = append(own, net.JoinHostPort("0.0.0.0", port), s.listener.Addr().String())
	}
	if public, err := url.Parse(settings.PublicURL); err == nil && public.Hostname() != "" {
		own = append(own, public.Hostname())
	}
	return own
}
