// Package anthropic is the models of Anthropic.
//
// Call [New] with the model's name and a key. A base URL names another service
// that speaks the same messages, which may need no key.
//
// Every reply ends with its end mark or with one of the typed errors of package
// model, whatever the service sends; those that may pass by themselves are
// wrapped in a [model.RetryError]. Nothing is read from the environment but the
// proxy's address, and nothing is tried again behind the caller's back.
package anthropic

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"net/http"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/internal/remote"
)

// DefaultMaxOutputTokens is the limit of a reply where neither the request nor
// the configuration names one: this vendor wants one in every request.
const DefaultMaxOutputTokens = 8192

// Config says where a model is, and how it is asked.
type Config struct {
	BaseURL         string          // "" is Anthropic's own; with another, the path ends before /v1/messages
	APIKey          identity.Secret // needed by Anthropic; the zero Secret sends none
	HTTPClient      *http.Client    // nil is a new one; its redirects are not followed
	MaxOutputTokens int             // for requests that name no limit; 0 is DefaultMaxOutputTokens
	Limits          model.Limits
}

// New returns the model of that name. It sends nothing.
func New(name string, cfg Config) (model.Model, error) {
	base := cfg.BaseURL
	if base == "" {
		base = anthropic.DefaultURL
		if cfg.APIKey.IsZero() {
			return nil, fmt.Errorf("anthropic model %q: Anthropic wants an API key", name)
		}
	}
	if err := remote.Check(name, base, cfg.APIKey); err != nil {
		return nil, fmt.Errorf("anthropic model %q: %w", name, err)
	}
	if cfg.MaxOutputTokens <= 0 {
		cfg.MaxOutputTokens = DefaultMaxOutputTokens
	}
	door := remote.NewDoor(cfg.HTTPClient, remote.Key{Header: "X-Api-Key", Secret: cfg.APIKey})
	// The key given here is a placeholder, without which the vendor's client
	// would look for one in the environment and in files.
	provider, err := anthropic.New(anthropic.WithBaseURL(base), anthropic.WithAPIKey("placeholder"), anthropic.WithHTTPClient(door))
	if err != nil {
		return nil, fmt.Errorf("anthropic model %q: %w", name, err)
	}
	lm, err := provider.LanguageModel(context.Background(), name)
	if err != nil {
		return nil, fmt.Errorf("anthropic model %q: %w", name, err)
	}
	open := func(req model.Request) (fantasy.LanguageModel, fantasy.ProviderOptions, func() bool, error) {
		options, err := wholeTools(req.Tools)
		return lm, options, nil, err
	}
	return remote.New("anthropic model "+name, cfg.MaxOutputTokens, cfg.Limits, door, open), nil
}

// wholeTools puts the tools into the request as they are. By itself fantasy
// sends no more than the properties of a schema, and would lose definitions
// and references, which schemas of MCP servers have.
func wholeTools(tools []model.Tool) (fantasy.ProviderOptions, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	list := make([]map[string]any, len(tools))
	for i, tool := range tools {
		var schema map[string]any
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			return nil, fmt.Errorf("%w: the schema of tool %q: %w", model.ErrRefused, tool.Name, err)
		}
		list[i] = map[string]any{"name": tool.Name, "description": tool.Description, "input_schema": schema}
	}
	return fantasy.ProviderOptions{anthropic.Name: &anthropic.ProviderOptions{
		ExtraBody: map[string]any{"tools": list},
	}}, nil
}
