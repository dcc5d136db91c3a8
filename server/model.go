package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-run/parley/identity"
	"github.com/parley-run/parley/model"
	"github.com/parley-run/parley/model/anthropic"
	"github.com/parley-run/parley/model/eliza"
	"github.com/parley-run/parley/model/openai"
	"github.com/parley-run/parley/model/script"
)

// DefaultModel needs no key and no network.
const DefaultModel = "eliza"

// elizaDelay is how long ELIZA takes for a word, so that a reply can be seen
// being written.
const elizaDelay = 20 * time.Millisecond

// NewModel returns the model that a name stands for: eliza, script:FILE,
// openai/NAME or anthropic/NAME; "" is DefaultModel. Vendors' keys and base
// URLs come from the environment that getenv reads. Nothing is sent.
func NewModel(name string, getenv func(string) string) (model.Model, error) {
	if path, ok := strings.CutPrefix(name, "script:"); ok {
		return script.Load(path)
	}
	vendor, rest, _ := strings.Cut(name, "/")
	switch {
	case name == "" || name == DefaultModel:
		return eliza.New(eliza.Config{Delay: elizaDelay}), nil
	case vendor == "openai" && rest != "":
		key, base, err := vendorEnv("OPENAI", name, getenv)
		if err != nil {
			return nil, err
		}
		return openai.New(rest, openai.Config{APIKey: key, BaseURL: base})
	case vendor == "anthropic" && rest != "":
		key, base, err := vendorEnv("ANTHROPIC", name, getenv)
		if err != nil {
			return nil, err
		}
		return anthropic.New(rest, anthropic.Config{APIKey: key, BaseURL: base})
	}
	return nil, fmt.Errorf("unknown model %q: --model is eliza, script:FILE, openai/NAME or anthropic/NAME", name)
}

// vendorEnv reads a vendor's key and base URL. Another service at a base URL
// may need no key.
func vendorEnv(vendor, name string, getenv func(string) string) (identity.Secret, string, error) {
	key, base := getenv(vendor+"_API_KEY"), getenv(vendor+"_BASE_URL")
	if key == "" && base == "" {
		return identity.Secret{}, "", fmt.Errorf("model %s: set %s_API_KEY, or %s_BASE_URL for a compatible service that needs no key", name, vendor, vendor)
	}
	return identity.NewSecret(key), base, nil
}

// Hint says that a vendor's key was found which nothing uses, and how to use
// it; "" if there is none, or if a model was named. Nothing is sent.
func Hint(name string, getenv func(string) string) string {
	if name != "" {
		return ""
	}
	for _, vendor := range []string{"OPENAI", "ANTHROPIC"} {
		if getenv(vendor+"_API_KEY") != "" {
			return fmt.Sprintf("%s_API_KEY is set: --model %s/NAME would use it; %s answers now, and sends nothing",
				vendor, strings.ToLower(vendor), DefaultModel)
		}
	}
	return ""
}
