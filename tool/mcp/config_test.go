package mcp

import (
	"strings"
	"testing"

	"github.com/parley-run/parley/identity"
)

// A configuration that cannot work is refused, by an error that repeats no value.
func TestConfigRefused(t *testing.T) {
	secret := map[string]identity.Secret{"A": identity.NewSecret("sekrit\n\x00")}
	for name, test := range map[string]struct {
		config Config
		want   string
	}{
		"no name":           {Config{Command: "x"}, "the name"},
		"underscore":        {Config{Name: "a_b", Command: "x"}, "the name"},
		"long name":         {Config{Name: strings.Repeat("a", 25), Command: "x"}, "the name"},
		"nothing":           {Config{Name: "a"}, "either a command or a URL"},
		"both":              {Config{Name: "a", Command: "sekrit", URL: "http://sekrit"}, "either a command or a URL"},
		"negative":          {Config{Name: "a", Command: "x", Timeout: -1}, "timeout"},
		"header of command": {Config{Name: "a", Command: "x", Header: secret}, "no headers"},
		"null":              {Config{Name: "a", Command: "x", Env: secret}, "environment variable"},
		"null argument":     {Config{Name: "a", Command: "x", Args: []string{"sekrit\x00"}}, "null character"},
		"arguments of URL":  {Config{Name: "a", URL: "http://x", Args: []string{"sekrit"}}, "no arguments"},
		"no URL":            {Config{Name: "a", URL: "http://sekrit\x7f"}, "cannot be read"},
		"another scheme":    {Config{Name: "a", URL: "file:///sekrit"}, "does not begin with http"},
		"no host":           {Config{Name: "a", URL: "https:///sekrit"}, "and a host"},
		"user":              {Config{Name: "a", URL: "https://me:sekrit@host/"}, "has a user"},
		"header value":      {Config{Name: "a", URL: "https://host/", Header: secret}, "the header A"},
		"header name":       {Config{Name: "a", URL: "https://host/", Header: map[string]identity.Secret{"sekrit:": {}}}, "a header"},
	} {
		_, err := New(test.config)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sekrit") {
			t.Errorf("%s: New = %v, want %q and no value", name, err, test.want)
		}
	}
}
