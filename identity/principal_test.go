package identity_test

import (
	"bytes"
	jsonv1 "encoding/json"
	"encoding/json/v2"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-run/parley/identity"
)

const token = "parley_hunter2-hunter2"

// hidden keeps a principal where fmt can call no method.
type hidden struct{ p identity.Principal }

// C-2.6: a credential is in no printed text, whatever the verb and however
// deep it lies.
func TestSecretNeverPrints(t *testing.T) {
	secret := identity.NewSecret(token)
	p := identity.Principal{Identity: identity.Identity{Actor: "ann"}, Credential: secret}
	values := map[string]any{
		"secret": secret, "pointer": &secret, "principal": p, "pointer to principal": &p,
		"slice": []identity.Principal{p}, "map": map[string]identity.Secret{"x": secret},
		"key":    map[identity.Secret]int{secret: 1},
		"hidden": hidden{p}, "pointer to hidden": &hidden{p}, "slice of hidden": []hidden{{p}},
		"error": fmt.Errorf("refuse %v: %w", p, errors.New("no")),
	}
	for name, value := range values {
		for _, verb := range "vTtbcdoOqxXUeEfFgGspw" {
			for _, flags := range []string{"", "+", "#", "-40", " ", "080", ".3"} {
				format := "%" + flags + string(verb)
				if got := fmt.Sprintf(format, value); leaks(got) {
					t.Errorf("Sprintf(%q, %s) = %s", format, name, got)
				}
			}
		}
		if got := fmt.Sprint(value) + fmt.Sprintln(value); leaks(got) {
			t.Errorf("Sprint(%s) = %s", name, got)
		}
	}
}

// C-2.6: nor in a log line.
func TestSecretNeverLogs(t *testing.T) {
	secret := identity.NewSecret(token)
	p := identity.Principal{Identity: identity.Identity{Actor: "ann"}, Credential: secret}
	var buf bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&buf, nil), slog.NewJSONHandler(&buf, nil)} {
		slog.New(h).Info("hello", "secret", secret, "principal", p, "pointer", &p, "hidden", hidden{p},
			slog.Group("in", "secret", secret), "list", []any{secret, p})
	}
	if got := buf.String(); leaks(got) || !strings.Contains(got, "[secret]") {
		t.Errorf("log is %s, want [secret] in place of the credential", got)
	}
}

// C-2.6: nor in an encoding; a document that would hold it is refused.
func TestSecretNeverEncodes(t *testing.T) {
	p := identity.Principal{Identity: identity.Identity{Actor: "ann"}, Credential: identity.NewSecret(token)}
	marshal := map[string]func(any) ([]byte, error){
		"json/v2": func(v any) ([]byte, error) { return json.Marshal(v) },
		"json/v1": jsonv1.Marshal,
	}
	for name, marshal := range marshal {
		for _, v := range []any{p, &p, p.Credential, map[identity.Secret]int{p.Credential: 1}, []any{p}} {
			if data, err := marshal(v); err == nil || leaks(string(data)+err.Error()) {
				t.Errorf("%s: Marshal(%T) = %s, %v, want an error", name, v, data, err)
			}
		}
	}
	if data, err := xml.Marshal(p); leaks(fmt.Sprint(string(data), err)) {
		t.Errorf("xml.Marshal = %s, %v", data, err)
	}
	var back identity.Principal
	err := json.Unmarshal([]byte(`{"Credential":"`+token+`"}`), &back)
	if err == nil || leaks(err.Error()) || !back.Credential.IsZero() {
		t.Errorf("Unmarshal of a credential: %v, want an error that does not repeat it", err)
	}
}

func TestSecretReveals(t *testing.T) {
	if got := identity.NewSecret(token).Reveal(); got != token {
		t.Errorf("Reveal() = %q, want %q", got, token)
	}
	if got := identity.NewSecret(""); !got.IsZero() || got.Reveal() != "" {
		t.Errorf("NewSecret(\"\") is not the zero Secret")
	}
	if identity.NewSecret(token).IsZero() {
		t.Error("a secret with a text is zero")
	}
}

func leaks(s string) bool {
	plain, hexed := "hunter2", fmt.Sprintf("%x", "hunter2")
	return strings.Contains(s, plain) || strings.Contains(strings.ToLower(s), hexed)
}
