package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
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

	// BargeIn says whether a message that comes while an answer is written cuts it;
	// so it is if nil. A stop does in any case (C-14, C-46).
	BargeIn *bool `toml:"barge_in"`

	RotateEveryTurns int `toml:"rotate_every_turns"` // C-19.1
	MaxTurnChars     int `toml:"max_turn_chars"`     // C-11.5
	MaxWindowTurns   int `toml:"max_window_turns"`   // C-20.13
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
	case key != "" && !isKey(key):
		what = fmt.Sprintf("unknown key %q; the keys are %s", key, strings.Join(keys(), ", "))
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

// keys lists the keys of a configuration file.
func keys() []string {
	var all []string
	for field := range reflect.TypeFor[Settings]().Fields() {
		all = append(all, field.Tag.Get("toml"))
	}
	return all
}

func isKey(name string) bool {
	for _, key := range keys() {
		if key == name {
			return true
		}
	}
	return false
}
