package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/kernel"
)

// Config says where a server is. Name, and one of Command and URL, are required.
type Config struct {
	Name string // 1 to 24 letters, digits and '-'; what the names of its tools begin with

	Command string                     // a program to start, found as a shell would
	Args    []string                   // of the program
	Env     map[string]identity.Secret // its environment, beside what every program needs

	URL    string                     // of a server that is met by streamable HTTP
	Header map[string]identity.Secret // of each request to it

	// Mode says what a crash in the middle of a call means, of any of its tools.
	Mode kernel.Mode
	// Timeout is how long a call may take; the agent's own limit holds beside it.
	// 60 s if 0.
	Timeout time.Duration

	Log *slog.Logger // slog.Default if nil
}

// Names as the configuration of a server may have them.
const (
	letters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	nameChars = letters + "0123456789-"
	maxName   = 24
)

// check refuses what cannot work. No value stands in its errors.
func (c Config) check() error {
	if c.Name == "" || len(c.Name) > maxName || strings.Trim(c.Name, nameChars) != "" {
		return fmt.Errorf("the name is not 1 to %d letters, digits and '-'", maxName)
	}
	if c.Timeout < 0 {
		return errors.New("the timeout is negative")
	}
	switch {
	case (c.Command == "") == (c.URL == ""):
		return errors.New("name either a command or a URL")
	case c.Command != "":
		return c.checkCommand()
	}
	return c.checkURL()
}

func (c Config) checkCommand() error {
	if len(c.Header) > 0 {
		return errors.New("a command has no headers")
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value.Reveal(), "\x00") {
			return errors.New("an environment variable has a name or a value that no environment can hold")
		}
	}
	if strings.Contains(c.Command, "\x00") || slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "\x00") }) {
		return errors.New("the command has a null character")
	}
	return nil
}

func (c Config) checkURL() error {
	if len(c.Args) > 0 || len(c.Env) > 0 {
		return errors.New("a URL has no arguments and no environment")
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return errors.New("the URL cannot be read")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("the URL does not begin with http:// or https:// and a host")
	case u.User != nil:
		return errors.New("the URL has a user in it: secrets belong into a header")
	}
	for name, value := range c.Header {
		if name == "" || strings.Trim(name, nameChars) != "" {
			return errors.New("a header has a name other than letters, digits and '-'")
		}
		if strings.ContainsFunc(value.Reveal(), func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("the header %s has a value with other than printable ASCII characters", name)
		}
	}
	return nil
}

// hide takes out of a text what was given in confidence: a server may repeat
// whatever it was sent. Of a URL the query goes as well, and of a secret each of
// its words, such as the one behind "Bearer".
func (c Config) hide(text string) string {
	const least = 4 // bytes of a secret
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		text = strings.NewReplacer(c.URL, "the server", u.String(), "the server").Replace(text)
		if u.RawQuery != "" {
			text = strings.ReplaceAll(text, u.RawQuery, "…")
		}
	}
	var words []string
	for _, secrets := range []map[string]identity.Secret{c.Header, c.Env} {
		for _, secret := range secrets {
			words = append(append(words, secret.Reveal()), strings.Fields(secret.Reveal())...)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) }) // one may stand in another
	for _, word := range words {
		if len(word) >= least {
			text = strings.ReplaceAll(text, word, "…")
		}
	}
	return text
}
