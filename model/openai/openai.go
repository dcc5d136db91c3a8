// Package openai is the models of OpenAI, and of every service that speaks its
// chat completions: Ollama, vLLM, llama.cpp and many others.
//
// Call [New] with the model's name. Another service is named by its base URL,
// and needs no key if it asks for none:
//
//	m, err := openai.New("llama3.2", openai.Config{BaseURL: "http://127.0.0.1:11434/v1"})
//
// Every reply ends with its end mark or with one of the typed errors of package
// model, whatever the service sends; those that may pass by themselves are
// wrapped in a [model.RetryError]. Nothing is read from the environment but the
// proxy's address, and nothing is tried again behind the caller's back.
package openai

import (
	"context"
	"fmt"
	"net/http"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/internal/remote"
)

// Config says where a model is, and how it is asked.
type Config struct {
	BaseURL         string          // "" is OpenAI's own; with another, the path ends before /chat/completions
	APIKey          identity.Secret // the zero Secret sends none
	HTTPClient      *http.Client    // nil is a new one; its redirects are not followed
	MaxOutputTokens int             // for requests that name no limit; 0 is the model's own
	Limits          model.Limits
}

// New returns the model of that name. It sends nothing.
func New(name string, cfg Config) (model.Model, error) {
	base := cfg.BaseURL
	if base == "" {
		base = openai.DefaultURL
		if cfg.APIKey.IsZero() {
			return nil, fmt.Errorf("openai model %q: OpenAI wants an API key", name)
		}
	}
	if err := remote.Check(name, base, cfg.APIKey); err != nil {
		return nil, fmt.Errorf("openai model %q: %w", name, err)
	}
	door := remote.NewDoor(cfg.HTTPClient, remote.Key{Header: "Authorization", Prefix: "Bearer ", Secret: cfg.APIKey})
	open := func(model.Request) (fantasy.LanguageModel, fantasy.ProviderOptions, func() bool, error) {
		end := &endMark{}
		lm, err := languageModel(name, base, cfg.BaseURL == "", door, end)
		return lm, nil, end.seen, err
	}
	return remote.New("openai model "+name, cfg.MaxOutputTokens, cfg.Limits, door, open), nil
}

// languageModel opens fantasy's model for one request. The key that it gets is
// a placeholder, without which it would look for one in the environment.
func languageModel(name, base string, own bool, door *remote.Door, end *endMark) (fantasy.LanguageModel, error) {
	mark := openai.WithLanguageModelMapFinishReasonFunc(end.reason)
	var provider fantasy.Provider
	var err error
	if own {
		provider, err = openai.New(openai.WithBaseURL(base), openai.WithAPIKey("placeholder"),
			openai.WithHTTPClient(door), openai.WithLanguageModelOptions(mark))
	} else {
		provider, err = openaicompat.New(openaicompat.WithBaseURL(base), openaicompat.WithAPIKey("placeholder"),
			openaicompat.WithHTTPClient(door), openaicompat.WithLanguageModelOptions(mark))
	}
	if err != nil {
		return nil, err
	}
	return provider.LanguageModel(context.Background(), name)
}

// endMark hears the finish reason of one reply. Where a stream ends without
// one behind a tool call, fantasy takes the call for whole; we do not, because
// what would have followed is not known.
type endMark struct{ raw string }

func (e *endMark) seen() bool { return e.raw != "" }

// reason maps a finish reason, those of some other services included.
func (e *endMark) reason(raw string) fantasy.FinishReason {
	e.raw = raw
	switch raw {
	case "eos", "eos_token", "stop_sequence", "end_turn":
		return fantasy.FinishReasonStop
	case "max_tokens":
		return fantasy.FinishReasonLength
	default:
		return openai.DefaultMapFinishReasonFunc(raw)
	}
}
