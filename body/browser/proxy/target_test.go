package proxy

import (
	"strings"
	"testing"
)

// hosts are spellings of hosts, with what they are read as; "" if they are not.
var hosts = []struct{ text, want string }{
	{"example.org", "example.org"},
	{"example.org:8443", "example.org:8443"},
	{"EXAMPLE.Org.", "example.org"},
	{"EXAMPLE.Org.:80", "example.org:80"},
	{"xn--bcher-kva.example", "xn--bcher-kva.example"},
	{"a_b.example", "a_b.example"},
	{"127.0.0.1", "127.0.0.1"},
	{"127.0.0.1.", "127.0.0.1"},
	{"[::1]:80", "[::1]:80"},
	{"[::1]", "[::1]"},
	{"[::FFFF:127.0.0.1]", "127.0.0.1"},
	{"[::ffff:7f00:1]:80", "127.0.0.1:80"},
	{strings.Repeat("a", 63) + ".example", strings.Repeat("a", 63) + ".example"},

	{"", ""},
	{".", ""},
	{":80", ""},
	{"example.org:", ""},
	{"example.org:0", ""},
	{"example.org:65536", ""},
	{"example.org:+80", ""},
	{"example.org:http", ""},
	{"example.org:80:80", ""},
	{"example..org", ""},
	{".example.org", ""},
	{"example.org..", ""},
	{"exa mple.org", ""},
	{"example.org\x00.evil.example", ""},
	{"example.org/path", ""},
	{"user@example.org", ""},
	{"ex%61mple.org", ""},
	{"bücher.example", ""},
	{"１２７.0.0.1", ""},
	{"127。0。0。1", ""},
	{strings.Repeat("a", 64) + ".example", ""},
	{strings.Repeat("a.", 127) + "example", ""},
	{strings.Repeat("a", 1000), ""},
	{"0x7f.1", ""},
	{"0x7f000001", ""},
	{"0X7F000001", ""},
	{"2130706433", ""},
	{"0177.0.0.1", ""},
	{"127.1", ""},
	{"127.0.0.01", ""},
	{"127.0.0.0x1", ""},
	{"0x", ""},
	{"1.2.3.4.5", ""},
	{"example.1", ""},
	{"256.0.0.1", ""},
	{"::1", ""},
	{"fe80::1%eth0", ""},
	{"[fe80::1%eth0]", ""},
	{"[fe80::1%25eth0]", ""},
	{"[::1", ""},
	{"[::1]80", ""},
	{"[::1]:", ""},
	{"[127.0.0.1]", ""},
	{"[example.org]", ""},
	{"[]", ""},
	{"[[::1]]", ""},
	{"[::1]]", ""},
}

// L-13: every host has one spelling, or is refused.
func TestParseTarget(t *testing.T) {
	for _, c := range hosts {
		got, err := parseTarget(c.text)
		if (err == nil) != (c.want != "") || err == nil && got.String() != c.want {
			t.Errorf("parseTarget(%q) = %v, %v, want %q", c.text, got, err, c.want)
		}
	}
}

// What was read is in a form of which nothing changes when it is read again.
func FuzzParseTarget(f *testing.F) {
	for _, c := range hosts {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if shown := printable(text); len(shown) > maxTarget || strings.Trim(shown, printableASCII) != "" {
			t.Errorf("printable(%q) = %q, want at most %d bytes of ASCII", text, shown, maxTarget)
		}
		got, err := parseTarget(text)
		if err != nil {
			return
		}
		if (got.name != "") == got.addr.IsValid() || got.addr.Zone() != "" || got.addr.Is4In6() {
			t.Errorf("parseTarget(%q) = %+v, want a name, or an address in its one form", text, got)
		}
		if again, err := parseTarget(got.String()); err != nil || again != got {
			t.Errorf("parseTarget(%q) = %v, %v, want %v as from %q", got, again, err, got, text)
		}
		if len(got.name) > 253 || strings.Trim(got.name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			t.Errorf("parseTarget(%q) has the name %q", text, got.name)
		}
	})
}

// printableASCII are all characters of ASCII that show.
var printableASCII = func() string {
	var all strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		all.WriteByte(c)
	}
	return all.String()
}()
