package server

import (
	"log/slog"
	"regexp"
	"strings"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"github.com/parley-run/parley/model/anthropic"
)

// withWindow returns the settings with the context window of the model and the
// room for a reply, where the configuration has none and they are known (C-1.8).
// Where they are not, there is no budget, and for a vendor's model the log says
// what to do about it.
func (s Settings) withWindow(getenv func(string) string, log *slog.Logger) Settings {
	window, reply, vendors := windowOf(s.Model, getenv)
	if s.ContextWindow == 0 {
		s.ContextWindow = window
	}
	switch {
	case s.ContextWindow == 0 && vendors:
		log.Info("the model's context window is not known: set context_window to keep long conversations within it", "model", s.Model)
	case s.ReserveOutputTokens != 0:
	case reply != 0:
		s.ReserveOutputTokens = min(reply, s.ContextWindow/2)
	default:
		s.ReserveOutputTokens = s.ContextWindow / 4
	}
	return s
}

// windowOf looks up a model in the table that was compiled in: its context
// window, and how much of it a reply may take, 0 where that is not known. It
// reports whether the model is a vendor's at all.
func windowOf(name string, getenv func(string) string) (window, reply int, vendors bool) {
	vendor, id, _ := strings.Cut(name, "/")
	if vendor != "openai" && vendor != "anthropic" {
		return 0, 0, false
	}
	base := strings.TrimRight(getenv(strings.ToUpper(vendor)+"_BASE_URL"), "/")
	known, ok := find(id, func(p catwalk.Provider) bool {
		return base != "" && strings.TrimRight(p.APIEndpoint, "/") == base
	})
	if !ok {
		known, _ = find(id, func(p catwalk.Provider) bool { return string(p.ID) == vendor })
	}
	window, reply = int(known.ContextWindow), int(known.DefaultMaxTokens)
	if vendor == "anthropic" {
		reply = anthropic.DefaultMaxOutputTokens // it is what the request asks for
	}
	return window, reply, true
}

// find looks for a model among the providers that are meant: by its id, else by
// its id without the date of a release.
func find(id string, meant func(catwalk.Provider) bool) (found catwalk.Model, ok bool) {
	for _, provider := range embedded.GetAll() {
		if !meant(provider) {
			continue
		}
		for _, m := range provider.Models {
			switch {
			case m.ID == id:
				return m, true
			case !ok && undated(m.ID) == undated(id):
				found, ok = m, true
			}
		}
	}
	return found, ok
}

var date = regexp.MustCompile(`-(\d{8}|\d{4}-\d{2}-\d{2})$`)

func undated(id string) string { return date.ReplaceAllString(id, "") }
