package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/parley-run/parley/agent"
	"github.com/parley-run/parley/conversation"
	"github.com/parley-run/parley/server/issuer"
)

// maxSettingsBytes is the largest configuration file.
const maxSettingsBytes = 1 << 20

// Settings are what people can set in a configuration file; each zero field
// means its default. docs/operations.md lists them.
type Settings struct {
	// Listen is the address of the HTTP server, DefaultListen if empty.
	Listen string `toml:"listen"`
	// Model names the model, eliza if empty: eliza, script:FILE, openai/NAME or
	// anthropic/NAME.
	Model string `toml:"model"`
	// System is the agent's system prompt, a short one of ours if empty.
	System string `toml:"system"`

	// PublicURL is where people meet the server, such as https://chat.example.org:
	// its host and origin are allowed, and cookies ask for TLS if it has it.
	PublicURL string `toml:"public_url"`
	// AllowedHosts, AllowedOrigins and AllowCredentials are those of
	// gateway.EdgeConfig; the server's own names are allowed beside them.
	AllowedHosts     []string `toml:"allowed_hosts"`
	AllowedOrigins   []string `toml:"allowed_origins"`
	AllowCredentials bool     `toml:"allow_credentials"`
	// TrustedProxies are the addresses, or ranges of them, whose X-Forwarded-Host,
	// -Proto and -For are believed.
	TrustedProxies []string `toml:"trusted_proxies"`
	// TLSCert and TLSKey are files in PEM; with them the server speaks TLS alone.
	TLSCert string `toml:"tls_cert"`
	TLSKey  string `toml:"tls_key"`
	// H2C lets clients speak HTTP/2 without TLS, as some proxies do.
	H2C bool `toml:"h2c"`

	MaxStreams          int `toml:"max_streams"`            // C-32.7
	MaxStreamsPerCaller int `toml:"max_streams_per_caller"` // C-32.7
	PostsPerMinute      int `toml:"posts_per_minute"`       // C-32.9

	// BargeIn says whether a message that comes while an answer is written cuts it;
	// so it is if nil. A stop does in any case (C-14, C-46).
	BargeIn *bool `toml:"barge_in"`

	RotateEveryTurns int `toml:"rotate_every_turns"` // C-19.1
	MaxTurnChars     int `toml:"max_turn_chars"`     // C-11.5
	MaxWindowTurns   int `toml:"max_window_turns"`   // C-20.13

	// ContextWindow and ReserveOutputTokens are the budget of a request, in tokens
	// (C-20). Zero, they are those of the model where it is known; where it is not,
	// there is no budget.
	ContextWindow       int `toml:"context_window"`
	ReserveOutputTokens int `toml:"reserve_output_tokens"`
	// Summarize says whether the model sums up the turns that leave its window
	// (C-21.2); nil means yes.
	Summarize *bool `toml:"summarize"`

	// OIDC is the issuer whose JWTs are taken; nil means none.
	OIDC *issuer.Config `toml:"oidc"`

	// Sharing says who may see and do what in shared conversations (C-33 to C-39).
	Sharing Sharing `toml:"sharing"`

	// Browser is the agent's browser.
	Browser Browser `toml:"browser"`

	// MCP are the MCP servers whose tools the agent has, by name: 1 to 24 letters,
	// digits and '-'.
	MCP map[string]MCP `toml:"mcp"`
}

// budget is that of the conversations.
func (s Settings) budget() conversation.Budget {
	b := conversation.Budget{ContextWindow: s.ContextWindow, ReserveOutputTokens: s.ReserveOutputTokens}
	if s.ContextWindow != 0 && (s.Summarize == nil || *s.Summarize) {
		b.Summarizer = agent.DefaultSummarizer
	}
	return b
}

// interrupts reports whether messages cut in.
func (s Settings) interrupts() bool { return s.BargeIn == nil || *s.BargeIn }

// ReadSettings reads a configuration file. Its errors name file, line and
// column, and repeat no value.
//
// Errors: one that wraps [os.ErrNotExist] where there is no such file.
func ReadSettings(path string) (Settings, error) {
	file, err := os.Open(path)
	if err != nil {
		return Settings{}, fmt.Errorf("configuration: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSettingsBytes+1))
	if err != nil {
		return Settings{}, fmt.Errorf("configuration: %w", err)
	}
	if len(data) > maxSettingsBytes {
		return Settings{}, fmt.Errorf("configuration %s: larger than %d bytes", path, maxSettingsBytes)
	}
	var settings Settings
	decoder := toml.NewDecoder(bytes.NewReader(data))
	if err := decoder.DisallowUnknownFields().Decode(&settings); err != nil {
		return Settings{}, settingsError(path, err)
	}
	if settings.OIDC != nil {
		if key, err := settings.OIDC.Check(); err != nil {
			row, column := placeOf(data, "oidc", key)
			return Settings{}, fmt.Errorf("configuration %s:%d:%d: oidc.%s: %w", path, row, column, key, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(settings.MCP)) {
		if err := settings.MCP[name].check(name); err != nil {
			row, column := placeOf(data, "mcp", name)
			return Settings{}, fmt.Errorf("configuration %s:%d:%d: mcp.%q: %w", path, row, column, name, err)
		}
	}
	if err := settings.Browser.check(); err != nil {
		row, column := placeOf(data, "browser")
		return Settings{}, fmt.Errorf("configuration %s:%d:%d: browser: %w", path, row, column, err)
	}
	if _, err := newRights(settings); err != nil {
		if wrong, ok := errors.AsType[*sharingError](err); ok {
			row, column := placeOf(data, wrong.path...)
			err = fmt.Errorf("configuration %s:%d:%d: %w", path, row, column, wrong)
		}
		return Settings{}, err
	}
	return settings, nil
}

// settingsError says where the file is wrong, in the words of the file.
func settingsError(path string, err error) error {
	wrong, ok := errors.AsType[*toml.DecodeError](err)
	if !ok {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	row, column := wrong.Position()
	key := strings.Join(wrong.Key(), ".")
	what := strings.TrimPrefix(wrong.Error(), "toml: ")
	switch {
	case len(wrong.Key()) == 3 && wrong.Key()[0] == "mcp" && !slices.Contains(keys[MCP](), wrong.Key()[2]):
		what = fmt.Sprintf("unknown key %q; the keys of an MCP server are %s", key, strings.Join(keys[MCP](), ", "))
	case len(wrong.Key()) == 2 && wrong.Key()[0] == "oidc" && !slices.Contains(keys[issuer.Config](), wrong.Key()[1]):
		what = fmt.Sprintf("unknown key %q; the keys of an issuer are %s", key, strings.Join(keys[issuer.Config](), ", "))
	case len(wrong.Key()) == 2 && wrong.Key()[0] == "browser" && !slices.Contains(keys[Browser](), wrong.Key()[1]):
		what = fmt.Sprintf("unknown key %q; the keys of the browser are %s", key, strings.Join(keys[Browser](), ", "))
	case len(wrong.Key()) == 2 && wrong.Key()[0] == "sharing" && !slices.Contains(keys[Sharing](), wrong.Key()[1]):
		what = fmt.Sprintf("unknown key %q; the keys of sharing are %s", key, strings.Join(keys[Sharing](), ", "))
	case len(wrong.Key()) == 3 && wrong.Key()[0] == "sharing" && wrong.Key()[1] == "people" && !slices.Contains(keys[SharingRule](), wrong.Key()[2]):
		what = fmt.Sprintf("unknown key %q; the keys of a rule are %s", key, strings.Join(keys[SharingRule](), ", "))
	case key != "" && !slices.Contains(keys[Settings](), wrong.Key()[0]):
		what = fmt.Sprintf("unknown key %q; the keys are %s", key, strings.Join(keys[Settings](), ", "))
	case strings.HasPrefix(what, "cannot decode"):
		what = fmt.Sprintf("key %q has a value of the wrong type", key)
	}
	return fmt.Errorf("configuration %s:%d:%d: %s", path, row, column, what)
}

// inKeys puts an error about settings, which names fields, into the words of
// the file.
func inKeys(err error) error {
	text := err.Error()
	for field := range reflect.TypeFor[Settings]().Fields() {
		if field.Type.Kind() == reflect.Int {
			text = strings.ReplaceAll(text, field.Name, field.Tag.Get("toml"))
		}
	}
	return fmt.Errorf("configuration: %s", text)
}

// keys lists the keys of a table of a configuration file.
func keys[T any]() []string {
	var all []string
	for field := range reflect.TypeFor[T]().Fields() {
		all = append(all, field.Tag.Get("toml"))
	}
	return all
}
